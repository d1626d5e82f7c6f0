// An answer's text as tokens: LaTeX, or plain text as models write it. Torch-free.
//
// Reading is one pass. What only changes the look is gone afterwards (\left, \displaystyle, spaces,
// $, \boxed, a full stop at the end), and what has several spellings has one: \dfrac, \tfrac and
// \frac; "≤", "<=", \le and \leqslant; 1,234 and 1{,}234 and 1\,234.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

enum class TokenKind {
  number,   // "12", "0.5", "0.(3)" for repeated digits
  letter,   // a variable or constant: "x", "pi", "theta"
  word,     // two letters or more without a backslash that are no function: "cm", "east"
  text,     // the inside of \text{..} and its kin, trimmed
  command,  // what takes arguments: "frac", "sqrt", "sin", "binom", "begin:pmatrix"
  symbol,   // operators and brackets: "+", "<=", "\\{", "cup", "deg", "and"
  accent,   // "vec", "hat", "angle": what follows it is part of a name
};

struct MathToken {
  TokenKind kind = TokenKind::symbol;
  std::string text;
  bool spaced = false;  // white space before it

  [[nodiscard]] bool is(std::string_view symbol_text) const {
    return kind == TokenKind::symbol && text == symbol_text;
  }
  [[nodiscard]] bool is_command(std::string_view name) const {
    return kind == TokenKind::command && text == name;
  }
};

// None when the text has a command that is not known here, or more than `max_tokens` tokens.
inline constexpr std::size_t max_tokens = 4096;
[[nodiscard]] std::optional<std::vector<MathToken>> math_tokens(std::string_view text);

// One spelling for texts with the same tokens.
[[nodiscard]] std::string spelling(const std::vector<MathToken>& tokens);

}  // namespace onset
