#include "onset/eval/same_answer.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onset/base/strings.h"
#include "onset/eval/letter_case.h"
#include "onset/eval/math_compare.h"
#include "onset/eval/math_parser.h"
#include "onset/eval/math_token.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// What is longer is read as text alone. The longest gold answers of the field have 200 bytes.
constexpr std::size_t max_bytes = 4096;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v{}$~") == text.npos;
}

std::string without_spaces(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c != ' ' && (c < '\t' || c > '\r')) kept += c;
  }
  return kept;
}

// Without the ** or ` of Markdown around all of it.
std::string_view without_markup(std::string_view text) {
  for (const std::string_view mark : {"**", "`"}) {
    if (text.size() > 2 * mark.size() && text.starts_with(mark) && text.ends_with(mark)) {
      text = trim(text.substr(mark.size(), text.size() - 2 * mark.size()));
    }
  }
  return text;
}

std::optional<MathSide> read_side(const std::vector<MathToken>& tokens) {
  std::optional<MathTree> tree = parse_math(tokens);
  if (!tree) return std::nullopt;
  return MathSide(tokens, std::move(*tree));
}

bool same(std::string_view gold, std::string_view answer) {
  if (gold == answer) return true;
  if (gold.size() > max_bytes || answer.size() > max_bytes) return false;
  const std::optional<std::vector<MathToken>> left = math_tokens(lossy_utf8(gold));
  const std::optional<std::vector<MathToken>> right = math_tokens(lossy_utf8(answer));
  if (!left || !right) return without_spaces(gold) == without_spaces(answer);
  if (left->empty() || right->empty()) return false;
  if (spelling(*left) == spelling(*right)) return true;
  std::optional<MathSide> gold_side = read_side(*left);
  if (!gold_side) return false;
  std::optional<MathSide> answer_side = read_side(*right);
  if (!answer_side) return false;
  return MathComparison(std::move(*gold_side), std::move(*answer_side)).same();
}

// The letter of a choice, in upper case; none when the text does not begin with one.
std::optional<char> choice_letter(std::string_view text) {
  text = trim(text);
  for (const std::string_view command :
       {"\\text{", "\\textbf{", "\\mathrm{", "\\mathbf{", "\\mbox{", "**", "$"}) {
    if (text.starts_with(command)) text.remove_prefix(command.size());
  }
  text = trim(text);
  if (text.starts_with("(")) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  const char letter = static_cast<char>(text.front() & ~0x20);
  if (letter < 'A' || letter > 'Z') return std::nullopt;
  text.remove_prefix(1);
  const bool stands_alone =
      text.empty() || std::string_view(").:},$*").find(text.front()) != std::string_view::npos;
  if (!stands_alone && !trim(text).empty()) return std::nullopt;
  return letter;
}

}  // namespace

Verdict same_answer(std::string_view gold, std::string_view answer) {
  if (is_blank(answer)) return Verdict::no_answer;
  return same(without_markup(trim(gold)), without_markup(trim(answer))) ? Verdict::equal
                                                                        : Verdict::different;
}

Verdict same_words(std::string_view gold, std::string_view answer) {
  if (is_blank(answer)) return Verdict::no_answer;
  if (gold.size() > max_bytes || answer.size() > max_bytes) return Verdict::different;
  const std::optional<std::vector<MathToken>> left = math_tokens(lossy_utf8(gold));
  const std::optional<std::vector<MathToken>> right = math_tokens(lossy_utf8(answer));
  if (!left || !right) return trim(gold) == trim(answer) ? Verdict::equal : Verdict::different;
  const std::string words = words_of(*left, 0, left->size());
  const bool same = !words.empty() && words == words_of(*right, 0, right->size());
  return same ? Verdict::equal : Verdict::different;
}

Verdict same_choice(std::string_view gold, std::string_view answer) {
  if (is_blank(answer)) return Verdict::no_answer;
  const std::optional<char> right = choice_letter(gold);
  return right && right == choice_letter(answer) ? Verdict::equal : Verdict::different;
}

}  // namespace onset
