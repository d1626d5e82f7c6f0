#include "onset/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace onset {
namespace unicode_table {

#include "onset/tokenizer/unicode_table.inc"

}  // namespace unicode_table

namespace {

struct Sequence {
  std::size_t length;  // of the sequence, or of the part to be replaced
  bool valid;
};

// The sequence at `at` (Unicode 16, table 3-7).
Sequence sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || byte(at + i) < low || byte(at + i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

// Length of the ASCII beginning of text.substr(at), eight bytes at a time.
std::size_t ascii_run(std::string_view text, std::size_t at) {
  const std::size_t start = at;
  while (at + 8 <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080U) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at - start;
}

}  // namespace

std::vector<CodeRange> class_ranges(CharClass wanted) {
  std::vector<CodeRange> ranges;
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (char_class(code) != wanted) continue;
    if (!ranges.empty() && ranges.back().high + 1 == code) {
      ranges.back().high = code;
    } else {
      ranges.push_back({code, code});
    }
  }
  return ranges;
}

bool is_nfc_class0(char32_t code) {
  using unicode_table::nfc_class0;
  const auto* range = std::lower_bound(nfc_class0.begin(), nfc_class0.end(), code,
                                       [](const CodeRange& r, char32_t c) { return r.high < c; });
  return range != nfc_class0.end() && range->low <= code;
}

bool is_word(char32_t code) {
  switch (char_class(code)) {
    case CharClass::letter:
    case CharClass::mark:
      return true;
    case CharClass::number:
      return utf8proc_category(static_cast<utf8proc_int32_t>(code)) != UTF8PROC_CATEGORY_NO;
    case CharClass::punctuation:
      return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_PC;
    case CharClass::symbol:  // circled letters are alphabetic
      return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
             (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
    default:
      return code == 0x200C || code == 0x200D;
  }
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    at += ascii_run(text, at);
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) {
      const Sequence sequence = sequence_at(text, at);
      if (!sequence.valid) return false;
      at += sequence.length;
    }
  }
  return true;
}

std::string lossy_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Sequence sequence = sequence_at(text, at);
    if (sequence.valid) {
      result.append(text, at, sequence.length);
    } else {
      result += "\xEF\xBF\xBD";  // U+FFFD
    }
    at += sequence.length;
  }
  return result;
}

}  // namespace onset
