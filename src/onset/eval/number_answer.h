// Answers that are one decimal number, as GSM8K's are. Torch-free.
//
// Two modes, both of use, since their figures differ:
// - string: the texts that the filters leave are compared by exact_match (exact_match.h), as
// lm-eval
//   does. "-3.0" is not "-3".
// - numeric: both are read as numbers and compared exactly. "-3.0" is "-3", "18." is "18".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "onset/eval/verdict.h"

namespace onset {

// A decimal number exactly: sign, then digits without needless zeros. Equal numbers have equal
// members.
struct DecimalNumber {
  bool negative = false;  // never for zero
  std::string whole;      // no leading zeros; empty for 0.x
  std::string fraction;   // no trailing zeros

  bool operator==(const DecimalNumber&) const = default;
};

// Reads "1,234", "$1,234.50", "-3.0", "+7", "18.", ".5", "-$5", "\$18": white space around it, one
// sign, one currency sign, thousands separators in their places ("1,23" is no number), a full stop
// or comma at the end. None for anything else.
[[nodiscard]] std::optional<DecimalNumber> read_number(std::string_view text);

// The number behind the first "#### " (lm-eval's strict-match); none without.
[[nodiscard]] std::optional<std::string_view> strict_number(std::string_view completion);
// The last number anywhere (lm-eval's flexible-extract).
[[nodiscard]] std::optional<std::string_view> last_number(std::string_view completion);

// Numeric mode. `gold` is a number or ends in "#### number" as GSM8K's answers do; throws an input
// error when it is neither. `answer` is what a filter found: no_answer when it is empty, different
// when it is no number.
[[nodiscard]] Verdict same_number(std::string_view gold, std::string_view answer);

}  // namespace onset
