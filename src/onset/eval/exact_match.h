// The metric exact_match as lm-evaluation-harness defines it. Torch-free.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/text_pattern.h"

namespace onset {

struct ExactMatchOptions {
  std::vector<TextPattern> regexes_to_ignore = {};  // removed from both sides first, in order
  bool ignore_case = false;
  bool ignore_punctuation = false;  // of ASCII
};

// The text with all that the options ignore left out: what exact_match compares.
[[nodiscard]] std::string exact_match_form(std::string_view text, const ExactMatchOptions& options);

// Whether answer and target are the same text, byte for byte, in that form. A number has many
// texts: "-3.0" and "-3" differ here (see number_answer.h).
[[nodiscard]] bool exact_match(std::string_view answer, std::string_view target,
                               const ExactMatchOptions& options);

// What lm-eval's task gsm8k ignores: commas, dollar signs, all up to "#### ", a full stop at the
// end, and case.
[[nodiscard]] const ExactMatchOptions& gsm8k_exact_match();

}  // namespace onset
