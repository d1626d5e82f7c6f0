#include "onset/report/html.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "onset/base/error.h"

namespace onset {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

std::string html_escape(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : valid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else if (control) {
      result += replacement;
    } else {
      result += c;
    }
  }
  return result;
}

std::string script_json(const OrderedJson& value) {
  const std::string json = value.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    // These stand in strings only, where the escape means the same character.
    if (c == '<') {
      result += "\\u003c";
    } else if (c == '>') {
      result += "\\u003e";
    } else if (c == '&') {
      result += "\\u0026";
    } else {
      result += c;
    }
  }
  return result;
}

OrderedJson picture_number(float value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::scientific, 4)
                       .ptr;
  double rounded = 0;
  std::from_chars(digits.data(), end, rounded);
  return rounded;
}

std::string fill_places(
    std::string_view skeleton,
    std::initializer_list<std::pair<std::string_view, std::string_view>> parts) {
  std::string result;
  for (;;) {
    const std::size_t begin = skeleton.find("{{");
    if (begin == std::string_view::npos) break;
    const std::size_t end = skeleton.find("}}", begin);
    if (end == std::string_view::npos) break;
    const std::string_view name = skeleton.substr(begin + 2, end - begin - 2);
    const auto* part = std::find_if(parts.begin(), parts.end(),
                                    [&](const auto& candidate) { return candidate.first == name; });
    if (part == parts.end()) throw std::logic_error(str_cat("nothing to fill in for ", name));
    result.append(skeleton.substr(0, begin)).append(part->second);
    skeleton.remove_prefix(end + 2);
  }
  return result.append(skeleton);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  const double size = std::fabs(value);
  if (size == 0) return "0";
  std::array<char, 64> text{};
  if (size < 1e-3 || size >= 1e12) {
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
  }
  const int whole = std::max(0, static_cast<int>(std::floor(std::log10(size))) + 1);
  std::snprintf(text.data(), text.size(), "%.*f", std::clamp(4 - whole, 0, 4), value);
  std::string result = text.data();
  if (result.find('.') != std::string::npos) {  // 100 rather than 100.0
    result.erase(result.find_last_not_of('0') + 1);
    if (result.back() == '.') result.pop_back();
  }
  std::size_t at = std::min(result.find('.'), result.size());
  const std::size_t first = result.front() == '-' ? 1 : 0;
  if (at - first < 5) return result;  // 1234 reads well as it is
  for (; at > first + 3;) {
    at -= 3;
    result.insert(at, ",");
  }
  return result;
}

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t count = 0;
  std::size_t cut = text.size();  // where the last allowed code point but one ends
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (is_continuation(text[at])) continue;
    if (count + 1 == most) cut = at;
    if (++count > most) return std::string(text.substr(0, cut)).append("\xE2\x80\xA6");
  }
  return std::string(text);
}

}  // namespace onset
