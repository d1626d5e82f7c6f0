#include "text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "onset/base/strings.h"

namespace onset::app {
namespace {

struct CodePoint {
  utf8proc_int32_t value;  // -1 for a byte that is not UTF-8
  std::size_t length;
};

CodePoint next_code_point(std::string_view text) {
  utf8proc_int32_t value = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto length = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &value);
  if (length <= 0) return {-1, 1};
  return {value, static_cast<std::size_t>(length)};
}

bool shows_as_itself(utf8proc_int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code == ' ';
    default:
      return true;
  }
}

std::string escape(utf8proc_int32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  char text[16];
  std::snprintf(text, sizeof text, "\\u{%X}", static_cast<unsigned>(code));
  return text;
}

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), pattern, value);
  return {text.data(), static_cast<std::size_t>(std::max(length, 0))};
}

}  // namespace

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos ||
           locale.find("utf-8") != std::string_view::npos;
  }
  return false;
}

std::string printable(std::string_view bytes, bool utf8) {
  std::string result;
  while (!bytes.empty()) {
    const auto [code, length] = next_code_point(bytes);
    if (code < 0) {
      char text[8];
      std::snprintf(text, sizeof text, "\\x%02X", static_cast<unsigned char>(bytes.front()));
      result += text;
    } else if (shows_as_itself(code) && (utf8 || code < 0x80)) {
      result += bytes.substr(0, length);
    } else {
      result += escape(code);
    }
    bytes.remove_prefix(length);
  }
  return result;
}

std::string message_text(std::string_view bytes) {
  constexpr std::size_t most_bytes = 2000;
  const std::string_view shown = whole_characters(bytes, most_bytes);
  return printable(shown, true) + (shown.size() < bytes.size() ? " ..." : "");
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto [code, length] = next_code_point(text);
    width += code < 0 ? 1 : static_cast<std::size_t>(std::max(utf8proc_charwidth(code), 0));
    text.remove_prefix(length);
  }
  return width;
}

std::string fit(std::string_view text, std::size_t width, bool utf8) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view ellipsis = utf8 ? "\xE2\x80\xA6" : "..";
  const std::size_t mark = utf8 ? 1 : 2;
  std::string result;
  std::size_t used = 0;
  while (!text.empty()) {
    const auto length = next_code_point(text).length;
    const auto glyph = text.substr(0, length);
    const auto columns = display_width(glyph);
    if (used + columns + mark > width) break;
    result += glyph;
    used += columns;
    text.remove_prefix(length);
  }
  return result.append(ellipsis);
}

std::string pad_left(std::string_view text, std::size_t width) {
  const auto used = display_width(text);
  return std::string(used < width ? width - used : 0, ' ').append(text);
}

std::string pad_right(std::string_view text, std::size_t width) {
  const auto used = display_width(text);
  return std::string(text).append(used < width ? width - used : 0, ' ');
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  bool line_is_empty = true;
  while (!text.empty()) {
    auto end = std::min(text.find_first_of(" \n"), text.size());
    if (text.substr(end).starts_with(" %")) {
      end = std::min(text.find_first_of(" \n", end + 1), text.size());
    }
    const auto word = text.substr(0, end);
    const auto columns = display_width(word);
    if (!word.empty()) {
      if (!line_is_empty && column + 1 + columns > width) {
        result.append("\n").append(indent, ' ');
        column = indent;
        line_is_empty = true;
      }
      if (!line_is_empty) result += ' ';
      result += word;
      column += columns + (line_is_empty ? 0 : 1);
      line_is_empty = false;
    }
    if (end < text.size() && text[end] == '\n') {
      result.append("\n").append(indent, ' ');
      column = indent;
      line_is_empty = true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string bar(double fraction, std::size_t width, bool utf8) {
  if (!(fraction > 0)) return "";
  const double columns = std::min(fraction, 1.0) * static_cast<double>(width);
  if (!utf8) {
    std::string marks;
    return marks.append(std::max<std::size_t>(1, std::lround(columns)), '#');
  }
  const auto eighths = std::max<std::size_t>(1, std::lround(columns * 8));
  std::string result;
  for (std::size_t i = 0; i < eighths / 8; ++i) result += "\xE2\x96\x88";  // full block
  // U+2589 is seven eighths, U+258F one.
  if (const auto rest = eighths % 8; rest > 0) {
    result += "\xE2\x96";
    result += static_cast<char>(0x90 - static_cast<int>(rest));
  }
  return result;
}

std::string heat(double fraction, bool utf8) {
  if (std::isnan(fraction)) return "-";
  const auto level = [fraction](double levels) {
    return static_cast<int>(std::clamp(fraction * levels, 0.0, levels - 1));
  };
  if (!utf8) return {static_cast<char>('0' + level(10))};
  // U+2581 is one eighth of a column high, U+2588 all of it.
  return {'\xE2', '\x96', static_cast<char>(0x81 + level(8))};
}

std::string fixed(double value, int decimals) {
  if (std::isnan(value)) return "-";
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::fixed, decimals);
  if (end.ec != std::errc()) return compact(value);
  const std::string text(digits.data(), end.ptr);
  // "-0.00" looks like a sign that means something.
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return zero && text.front() == '-' ? text.substr(1) : text;
}

std::string compact(double value) {
  if (std::isnan(value)) return "n/a";  // what was not measured, or is no number
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 0.001 || size >= 1e7) return format("%.2e", value);
  if (size < 1) return format("%.4f", value);
  if (size < 10) return format("%.3f", value);
  if (size < 100) return format("%.2f", value);
  if (size < 10000) return format("%.1f", value);
  return format("%.0f", value);
}

std::string shortest(double value) {
  std::array<char, 64> digits{};
  const double size = std::abs(value);
  // Left to itself, to_chars writes 100000 as 1e+05.
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e15);
  const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, form).ptr;
  return {digits.data(), end};
}

std::string percent(double share) {
  if (std::isnan(share)) return "n/a";
  const double rounded = std::round(share * 1000) / 10;
  return format("%.1f %%", rounded == 0 ? 0.0 : rounded);  // never "-0.0"
}

std::string human_seconds(double seconds) {
  if (seconds < 0.0999995) return format("%.2f ms", seconds * 1000);
  return format(seconds < 9.995 ? "%.2f s" : "%.1f s", seconds);
}

std::string column(const std::string& text, std::size_t width) {
  return text.size() < width ? pad_left(text, width) : " " + text;
}

std::string human_bytes(double bytes) {
  constexpr std::array<const char*, 6> units{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < units.size()) {
    bytes /= 1000;
    ++unit;
  }
  const char* pattern = unit == 0 || bytes >= 99.95 ? "%.0f" : (bytes >= 9.995 ? "%.1f" : "%.2f");
  return format(pattern, bytes) + " " + units[unit];
}

}  // namespace onset::app
