#include "onset/eval/number_answer.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::string_view mark = "#### ";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_number_char(char c) { return is_digit(c) || c == '.' || c == ','; }

// Takes `prefix` off the front of `text`.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_currency(std::string_view& text) {
  for (const std::string_view sign : {"$", "\\$", "€", "£", "¥", "₹"}) {
    if (take(text, sign)) return true;
  }
  return false;
}

// The digits of "1,234,567"; none when a separator is out of place.
std::optional<std::string> ungrouped(std::string_view text) {
  std::string digits;
  const std::size_t first = std::min(text.find(','), text.size());
  if (first < text.size() && (first == 0 || first > 3)) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_separator = i >= first && (i - first) % 4 == 0;
    if (is_separator != (text[i] == ',')) return std::nullopt;
    if (!is_separator) digits += text[i];
  }
  if (first < text.size() && (text.size() - first) % 4 != 0) return std::nullopt;
  return digits;
}

}  // namespace

std::optional<DecimalNumber> read_number(std::string_view text) {
  text = trim(text);
  DecimalNumber number;
  const bool currency_first = take_currency(text);
  if (take(text, "-") || take(text, "−")) {
    number.negative = true;
  } else {
    take(text, "+");
  }
  if (!currency_first) take_currency(text);
  text = trim(text);
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_number_char)) return std::nullopt;
  if (text.back() == '.' || text.back() == ',') text.remove_suffix(1);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view fraction = text.substr(std::min(point + 1, text.size()));
  if (!std::all_of(fraction.begin(), fraction.end(), is_digit)) return std::nullopt;
  const std::optional<std::string> whole = ungrouped(text.substr(0, point));
  if (!whole || (whole->empty() && fraction.empty())) return std::nullopt;
  number.whole = whole->substr(std::min(whole->find_first_not_of('0'), whole->size()));
  number.fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  if (number.whole.empty() && number.fraction.empty()) number.negative = false;
  return number;
}

std::optional<std::string_view> strict_number(std::string_view completion) {
  for (std::size_t at = completion.find(mark); at != npos; at = completion.find(mark, at + 1)) {
    const std::size_t start = at + mark.size();
    std::size_t end = start;
    if (end < completion.size() && completion[end] == '-') ++end;
    const std::size_t digits = end;
    while (end < completion.size() && is_number_char(completion[end])) ++end;
    if (end > digits) return completion.substr(start, end - start);
  }
  return std::nullopt;
}

std::optional<std::string_view> last_number(std::string_view completion) {
  // The pattern (-?[$0-9.,]{2,})|(-?[0-9]+) of lm-eval, whose matches are runs of [$0-9.,] of two
  // characters or more, or single digits.
  const auto in_run = [](char c) { return is_number_char(c) || c == '$'; };
  for (std::size_t end = completion.size(); end > 0;) {
    if (!in_run(completion[end - 1])) {
      --end;
      continue;
    }
    std::size_t start = end;
    while (start > 0 && in_run(completion[start - 1])) --start;
    const bool counts = end - start >= 2 || is_digit(completion[start]);
    if (counts) {
      if (start > 0 && completion[start - 1] == '-') --start;
      return completion.substr(start, end - start);
    }
    end = start;
  }
  return std::nullopt;
}

Verdict same_number(std::string_view gold, std::string_view answer) {
  const std::size_t at = gold.rfind("####");
  const std::string_view number = at == npos ? gold : gold.substr(at + 4);
  const std::optional<DecimalNumber> right = read_number(number);
  if (!right) throw input_error(str_cat("the right answer ", quote(number), " is no number"));
  if (trim(answer).empty()) return Verdict::no_answer;
  const std::optional<DecimalNumber> given = read_number(answer);
  return given && *given == *right ? Verdict::equal : Verdict::different;
}

}  // namespace onset
