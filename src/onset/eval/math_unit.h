// Units behind a number, in one spelling. Torch-free.
#pragma once

#include <string>
#include <string_view>

namespace onset {

// "inches^2", "square inches" and "sq. in." are "inch^2"; "mph" and "miles per hour" are
// "mile/hour"; "apples" is "apple". No unit is converted into another: a metre is not 100 cm. A
// phrase that is no unit ("or more") begins with '?'.
[[nodiscard]] std::string unit_spelling(std::string_view text);

// "1000000" for "million"; empty for words that are no number of ten's powers, or dozen.
[[nodiscard]] std::string scale_digits(std::string_view word);

// Whether a word without \text is taken for a unit ("cm", "inches", "dollars").
[[nodiscard]] bool is_unit_word(std::string_view word);

// Whether two answers with these units may be equal: the units are, or one is missing.
[[nodiscard]] bool units_fit(std::string_view a, std::string_view b);

}  // namespace onset
