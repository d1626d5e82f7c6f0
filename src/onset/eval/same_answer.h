// Whether an answer to a question of mathematics is the gold one. Torch-free.
//
// Both are read as LaTeX or plain text (math_parser.h) and compared as docs/grading.md says:
// fractions exactly, everything else by values at points with 33 digits; nothing is equal because
// it is near, or because it is a part of the other. Answers come from a model and may be anything:
// what is too long, too deep or not understood equals only what is written alike, and is told so in
// milliseconds.
#pragma once

#include <string_view>

#include "onset/eval/verdict.h"

namespace onset {

// `gold` and `answer` without their box (answer_text.h takes it off). no_answer when `answer` is
// blank.
[[nodiscard]] Verdict same_answer(std::string_view gold, std::string_view answer);

// The same words, whatever their case, punctuation and \text{..}: "\text{East}." and "east".
[[nodiscard]] Verdict same_words(std::string_view gold, std::string_view answer);

// The same letter of a choice, as "B", "(b)", "B." or "\text{(B)}"; also before more text that is
// set off from it: "(B) 12", "B. 12", "B: 12". `gold` is such a letter.
[[nodiscard]] Verdict same_choice(std::string_view gold, std::string_view answer);

}  // namespace onset
