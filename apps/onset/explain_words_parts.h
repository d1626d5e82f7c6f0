// Pieces of the words of `onset explain`.
#pragma once

#include <string>
#include <vector>

#include "explain_report.h"

namespace onset::app {

// "layer 11 (block 12 of 30)".
[[nodiscard]] std::string layer_words(const Explanation& explanation, std::int64_t layer);
// "token 0 ("My") of prompt 0".
[[nodiscard]] std::string token_words(const Explanation& explanation, const TargetToken& token,
                                      const TextStyle& style);
// "as is", "product normalised", ..
[[nodiscard]] std::string ffn_change_words(FfnChange change);

[[nodiscard]] std::vector<std::string> factorial_words(const Explanation& explanation);
[[nodiscard]] std::vector<std::string> vocabulary_words(const Explanation& explanation,
                                                        const TextStyle& style);
[[nodiscard]] std::vector<std::string> dose_words(const Explanation& explanation);

}  // namespace onset::app
