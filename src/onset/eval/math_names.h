// The commands of LaTeX and the signs of Unicode that answers use, and what each stands for.
// Torch-free.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "onset/eval/math_token.h"

namespace onset {

// \name as a token; none for one that is not known.
[[nodiscard]] std::optional<MathToken> token_of_command(std::string_view name);
// A name written without a backslash ("sin", "pi", "infinity"); none for other words.
[[nodiscard]] std::optional<MathToken> token_of_word(std::string_view word);
// \left, \displaystyle, ...: commands that change the look alone.
[[nodiscard]] bool is_layout(std::string_view command);
// \text, \mathrm, ...: commands whose argument is text.
[[nodiscard]] bool takes_text(std::string_view command);
// sin, log, ...: functions of one argument that may stand without parentheses.
[[nodiscard]] bool is_function(std::string_view name);

// The text with signs such as × ≤ π ² ½ as LaTeX writes them, and odd spaces and quotes as ASCII.
[[nodiscard]] std::string ascii_math(std::string_view text);

}  // namespace onset
