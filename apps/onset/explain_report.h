// What `onset explain` found, and its forms: JSON, tables with words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/massive/explain.h"
#include "onset/wemask/mask_spec.h"
#include "prompts.h"
#include "scan_report.h"

namespace onset::app {

// Tokens of a sample that sinks are measured in, BOS included, where the text has as many.
inline constexpr std::int64_t sink_sample_length = 64;

// The text of the experiments.
struct TextUsed {
  std::string source;  // a path, "built-in sample" or "--text-ids"
  std::int64_t tokens = 0;
  bool shortened = false;  // the text has more
  WindowOptions windows;
  std::int64_t sample_length = 0;
  std::int64_t samples = 0;
};

struct Explanation {
  std::string path;   // as given on the command line
  OrderedJson model;  // the `model` object
  std::optional<std::int64_t> bos;
  std::vector<EncodedPrompt> prompts;
  ScanResult scan;
  ExplainResult result;
  std::optional<TextUsed> text;
  std::map<std::int64_t, std::string> pieces;  // bytes of ids that tables name; may be empty
  // With a mask: the same prompts and the same target under it. What ends before the first masked
  // layer cannot differ and is not run again (masked_parts).
  std::optional<MaskSpec> mask;
  std::optional<ScanResult> masked_scan;
  std::optional<ExplainResult> masked;
};

// The parts that a mask from that layer on can change: all but the vocabulary where the layer that
// is explained lies before it.
[[nodiscard]] ExplainParts masked_parts(const ExplainParts& parts, const ExplainTarget& target,
                                        const MaskSpec& mask);
// The explanation that the mask leaves, as one of its own: result and scan are the masked ones.
[[nodiscard]] Explanation masked_explanation(const Explanation& explanation);
// Of an explanation with a mask: numbers without and with it, 80 columns wide.
[[nodiscard]] std::string explain_masked_text(const Explanation& explanation);
// What the mask changes and what it cannot, in words: paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> explain_masked_paragraphs(const Explanation& explanation);

// Paragraphs, not wrapped; of a part that was not asked for, none.
struct ExplainWords {
  std::vector<std::string> target;
  std::vector<std::string> norm;
  std::vector<std::string> ffn;
  std::vector<std::string> factorial;
  std::vector<std::string> fall;
  std::vector<std::string> vocabulary;
  std::vector<std::string> dose;
};
[[nodiscard]] ExplainWords explain_words(const Explanation& explanation, const TextStyle& style);

// Everything but `run`.
[[nodiscard]] OrderedJson explanation_json(const Explanation& explanation);
// Tables and words, 80 columns wide.
[[nodiscard]] std::string explanation_text(const Explanation& explanation, const TextStyle& style);

}  // namespace onset::app
