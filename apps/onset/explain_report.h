// What `onset explain` found, and its forms: JSON, tables with words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/massive/explain.h"
#include "prompts.h"
#include "scan_report.h"

namespace onset::app {

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
};

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
