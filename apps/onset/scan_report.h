// What `onset scan` found in each model, and its forms: JSON, CSV, tables, a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "failure.h"
#include "onset/base/json.h"
#include "onset/massive/scan.h"
#include "onset/report/scan_page.h"
#include "onset/report/states.h"
#include "onset/wemask/mask_spec.h"
#include "prompts.h"
#include "text.h"

namespace onset::app {

// One model's scan, or why there is none.
struct ModelScan {
  std::string path;   // as given on the command line
  OrderedJson model;  // the `model` object
  std::optional<std::int64_t> bos;
  std::vector<EncodedPrompt> prompts;
  std::optional<ScanResult> result;
  std::optional<PromptStates> states;  // of the shown prompt, where a page is wanted
  std::optional<MaskSpec> mask;
  std::optional<ScanResult> masked;  // the same prompts under the mask
  Failure failure;                   // where there is no result
};

// Everything but `run`: the fields that docs/json.md lists.
[[nodiscard]] OrderedJson scan_json(const ModelScan& scan);
// A header line and one row for each model, prompt and layer; masked ones are told by a last
// column.
[[nodiscard]] std::string scan_csv(const std::vector<ModelScan>& scans);
// Prompts, layers, stages and a verdict in words, 80 columns wide.
[[nodiscard]] std::string scan_text(const ModelScan& scan, const TextStyle& style);
// One row a model, 80 columns wide.
[[nodiscard]] std::string models_text(const std::vector<ModelScan>& scans, const TextStyle& style);

// The shown prompt's layers without and with the mask, and the change in words; 80 columns wide.
[[nodiscard]] std::string scan_masked_text(const ModelScan& scan);
// What the mask changes, in words: paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> scan_masked_paragraphs(const ModelScan& scan);

// How far a dim is massive: in how many prompts, at which layers, and its largest entry there.
struct MassiveDim {
  std::int64_t dim = 0;
  std::int64_t prompts = 0;
  std::int64_t first_layer = 0;
  std::int64_t last_layer = 0;
  std::int64_t layers = 0;       // distinct, over all prompts
  std::int64_t value_layer = 0;  // where `value` stands
  float value = 0;               // signed, the largest by magnitude
};

// One for each of result.massive_dims: those of most prompts first, then the larger value.
[[nodiscard]] std::vector<MassiveDim> massive_dim_rows(const ScanResult& result);

// The prompt whose layers and stages stand for the model: the first that agrees with the ME layer,
// or the candidate's, or the first.
[[nodiscard]] std::size_t shown_prompt(const ScanResult& result);
// "+12.5", "-3".
[[nodiscard]] std::string part_text(float value);
// What the experts of a mixture add to the FFN's part: the first few and the shared one; empty
// without.
[[nodiscard]] std::string experts_text(const std::vector<ExpertPart>& experts,
                                       const std::optional<float>& shared_out);
// The entries of PromptScan::at_me_layer and ::largest and who wrote them.
[[nodiscard]] std::string written_text(const ModelScan& scan);
// Two sentences, then the notes: paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> verdict_paragraphs(const ModelScan& scan,
                                                          const TextStyle& style);
// The same, 80 columns wide.
[[nodiscard]] std::string scan_verdict(const ModelScan& scan, const TextStyle& style);
// The end of a path, which tells models apart; it can be shown.
[[nodiscard]] std::string model_name(const std::string& path);
// What a page says of a scan; it refers to `scan`, which has states. Without `run`, no facts.
[[nodiscard]] ScanPageInput scan_page_input(const ModelScan& scan, const OrderedJson& run);
// The page of --report. `run` is the JSON's object of that name.
[[nodiscard]] std::string scan_html(const ModelScan& scan, const OrderedJson& run);

}  // namespace onset::app
