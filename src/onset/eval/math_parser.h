// From tokens to a tree. Torch-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onset/eval/math_token.h"
#include "onset/eval/math_tree.h"

namespace onset {

// The grammar, loosest first:
//   answer    items between "," ";" and "and" "or": a list where there are several
//   item      words | [currency] relation [unit]
//   relation  join (= < > <= >= != in join)*
//   join      sum (cup | cap | setminus sum)*; sum ":" sum is a ratio
//   sum       [+ - pm mp] product ((+ - pm mp) product)*
//   product   power ([* /] power)*, factors side by side multiply
//   power     postfix [^ power]
//   postfix   primary (! % deg)*
//   primary   number | mixed number | number _ base | letter [_ index] | \frac.. | (..) | {..} | ..
// None when the tokens do not fit it, or nest deeper than 64.
[[nodiscard]] std::optional<MathTree> parse_math(const std::vector<MathToken>& tokens);

// Words of tokens [first, last): what is written there without brackets and punctuation, in lower
// case, one space between; without a leading article.
[[nodiscard]] std::string words_of(const std::vector<MathToken>& tokens, std::size_t first,
                                   std::size_t last);

}  // namespace onset
