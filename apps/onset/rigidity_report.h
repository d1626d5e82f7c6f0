// What `onset rigidity` found, and its forms: JSON and tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/massive/rigidity.h"
#include "onset/massive/scan.h"
#include "onset/wemask/mask_spec.h"
#include "prompts.h"
#include "text.h"

namespace onset::app {

struct ModelRigidity {
  std::string path;   // as given on the command line
  OrderedJson model;  // the `model` object
  std::optional<std::int64_t> bos;
  std::vector<EncodedPrompt> prompts;  // all of them
  ScanResult scan;
  RigidityTokens named;
  std::vector<std::size_t> compared;  // indices of the prompts that `result` compares
  RigidityResult result;
  std::optional<MaskSpec> mask;
  std::optional<RigidityResult> masked;  // the same tokens under the mask
};

// Everything but `run`: the fields that docs/json.md lists.
[[nodiscard]] OrderedJson rigidity_json(const ModelRigidity& rigidity);
// Of one layer at one site: the cosine with the layer before, the mean cosine between prompts, and
// the effective rank, as they stand in the tables; NaN where there is none.
struct RigidityCell {
  double previous = 0;
  double pairs = 0;
  double rank = 0;
};
[[nodiscard]] RigidityCell rigidity_cell(const StateRigidity& state, std::size_t layer);

// Of measured rigidity with a mask: the layers under it, the differences, and the change in words.
[[nodiscard]] std::string rigidity_masked_text(const ModelRigidity& rigidity);
// What the mask changes, in words: paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> rigidity_masked_paragraphs(const ModelRigidity& rigidity);

// Two tables, of the token and of the baseline, and a verdict in words; 80 columns wide.
[[nodiscard]] std::string rigidity_text(const ModelRigidity& rigidity, const TextStyle& style);

// The parts of a table that the masked one shares. Two lines, and a layer's cells; `text` writes a
// number with so many decimals.
[[nodiscard]] std::string rigidity_heading(const std::vector<SiteRigidity>& sites);
[[nodiscard]] std::string rigidity_cells_text(const RigidityCell& cell,
                                              std::string (*text)(double, int));

}  // namespace onset::app
