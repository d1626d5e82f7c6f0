#include "onset/tokenizer/python_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "onset/base/error.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

bool is_python_space(char32_t code) {
  return char_class(code) == CharClass::space || (code >= 0x1C && code <= 0x1F);
}

// float.__repr__: the shortest digits that read back, with an exponent from 1e16 on and below 1e-4.
std::string python_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  constexpr double fixed_from = 1e-4;
  constexpr double fixed_below = 1e16;
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= fixed_from && size < fixed_below);
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(digits.data(), end);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

constexpr int max_depth = 500;  // below what Python's own parser takes, and our stack

void write(const OrderedJson& value, std::string& out, int depth) {
  require_input(depth <= max_depth, "a tool or its arguments are nested too deeply");
  if (value.is_object()) {
    out += '{';
    for (auto item = value.begin(); item != value.end(); ++item) {
      if (item != value.begin()) out += ", ";
      write(OrderedJson(item.key()), out, depth + 1);
      out += ": ";
      write(item.value(), out, depth + 1);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (auto item = value.begin(); item != value.end(); ++item) {
      if (item != value.begin()) out += ", ";
      write(*item, out, depth + 1);
    }
    out += ']';
  } else if (value.is_number_float()) {
    out += python_float(value.get<double>());
  } else {
    out += value.dump(-1, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace);
  }
}

}  // namespace

std::string_view python_strip(std::string_view text) {
  std::size_t start = 0;
  while (start < text.size()) {
    const DecodedChar next = decode_char(text, start);
    if (!is_python_space(next.code)) break;
    start += next.length;
  }
  return python_rstrip(text.substr(start));
}

std::string_view python_rstrip(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t before = previous_char(text, end);
    if (!is_python_space(decode_char(text, before).code)) break;
    end = before;
  }
  return text.substr(0, end);
}

std::string_view strip_newlines_left(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  return text;
}

std::string_view strip_newlines_right(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text;
}

std::string python_json(const OrderedJson& value) {
  std::string out;
  write(value, out, 0);
  return out;
}

}  // namespace onset
