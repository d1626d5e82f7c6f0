// Text on a terminal: escapes, display widths, wrapping, bars and numbers for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace onset::app {

// How a table may look where it goes.
struct TextStyle {
  bool utf8 = false;
  bool colour = false;
};

// Does the environment's locale name UTF-8? Tables fall back to ASCII otherwise.
[[nodiscard]] bool utf8_locale();

// Bytes as they can be shown on one line: control and format characters, line separators and bad
// UTF-8 are escaped (\n, \t, \u{200B}, \xC3); without `utf8` everything outside ASCII is.
[[nodiscard]] std::string printable(std::string_view bytes, bool utf8);

// A message that may hold names and text from files, as it can be shown on one line: printable, and
// cut after about 2,000 bytes.
[[nodiscard]] std::string message_text(std::string_view bytes);

// Columns that printable text takes.
[[nodiscard]] std::size_t display_width(std::string_view text);
// Cut to `width` columns, the cut shown by an ellipsis.
[[nodiscard]] std::string fit(std::string_view text, std::size_t width, bool utf8);
// Filled with spaces to `width` columns.
[[nodiscard]] std::string pad_left(std::string_view text, std::size_t width);
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t width);

// Lines of at most `width` columns; all but the first begin with `indent` spaces, and the first is
// taken to begin in that column. Line breaks in the text stay; a number stays with its "%".
[[nodiscard]] std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

// A bar of `fraction` (0 to 1) of `width` columns: eighths of block characters, or '#'.
[[nodiscard]] std::string bar(double fraction, std::size_t width, bool utf8);

// One column that shows a fraction from 0 to 1: a block character of that height, or a digit of
// tenths, 9 from .9 on; "-" for NaN.
[[nodiscard]] std::string heat(double fraction, bool utf8);

// With that many decimals; "-" for NaN.
[[nodiscard]] std::string fixed(double value, int decimals);
// "0.810", "33.17", "23738": about four digits, at most 8 characters for anything a float holds.
[[nodiscard]] std::string compact(double value);
// The shortest decimal that reads back as the same number: "100000", "0.5"; with an exponent only
// where there would be many zeros.
[[nodiscard]] std::string shortest(double value);
// A share as "99.6 %".
[[nodiscard]] std::string percent(double share);
// pad_left, with a space before a text that fills the width or more.
[[nodiscard]] std::string column(const std::string& text, std::size_t width);
// "0.24 ms", "1.35 s".
[[nodiscard]] std::string human_seconds(double seconds);
// "98.1 MB", in powers of ten.
[[nodiscard]] std::string human_bytes(double bytes);

}  // namespace onset::app
