// The graders of the paper's released code (arXiv 2605.08504), for reproducing its numbers.
// Torch-free.
//
// They count as right what is not: the box may be the prompt's own, and a prediction that is a part
// of the gold answer's text is right, the empty one too ("1" for 18). Use same_answer.h to find out
// whether a model is right. What the released code does, beside this: GSM8K completions end after
// 128 tokens, AIME's after 512, MATH-500's after 1024; the prompt says
// "Please reason step by step and put your final answer within \boxed{{}}." with both pairs of
// braces, so a completion without a box predicts "{}".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace onset {

// The prediction: what the last \boxed{..} of prompt and completion holds, any braces counted. None
// when there is no \boxed, or its braces do not match; also when it is \fbox or has no brace
// directly behind it.
[[nodiscard]] std::optional<std::string> released_prediction(std::string_view prompt,
                                                             std::string_view completion);

// The text in the form that is compared: that of the graders of MATH (Hendrycks et al. 2021), with
// a space, unit, \left, \! and the like dropped, \frac and \sqrt given braces, "0.5" and "a/b" made
// \frac. None for a text that ends in \frac or \sqrt, at which the released code stops.
[[nodiscard]] std::optional<std::string> released_form(std::string_view text);

// Whether the released code counts the completion as right. Of a gold answer with "####" (GSM8K) it
// takes what follows. Where it would stop with an error, the answer is wrong here.
[[nodiscard]] bool released_math_correct(std::string_view gold, std::string_view prompt,
                                         std::string_view completion);

}  // namespace onset
