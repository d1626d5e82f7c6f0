// Code points and their classes, as the regex engine of the reference tokenizers knows them
// (Unicode 16); Debian's libraries know older versions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

// Every code point has exactly one.
enum class CharClass : std::uint8_t { other, letter, number, mark, punctuation, symbol, space };

struct CodeRange {
  char32_t low;
  char32_t high;  // inclusive
};

// The table behind char_class(): a block number for every 128 code points, and the blocks.
namespace unicode_table {
constexpr unsigned class_block_size = 128;
extern const std::uint8_t class_blocks[];
extern const std::uint8_t class_table[];
}  // namespace unicode_table

// `code` at most U+10FFFF.
[[nodiscard]] inline CharClass char_class(char32_t code) {
  using namespace unicode_table;
  const unsigned block = class_blocks[code / class_block_size];
  return static_cast<CharClass>(class_table[block * class_block_size + code % class_block_size]);
}
// All ranges of a class, ascending.
[[nodiscard]] std::vector<CodeRange> class_ranges(CharClass wanted);
// Marks that the reference NFC takes as class 0: they block reordering and composition.
[[nodiscard]] bool is_nfc_class0(char32_t code);

// \w of the reference tokenizers' regex engine.
[[nodiscard]] bool is_word(char32_t code);

struct DecodedChar {
  char32_t code;
  std::size_t length;  // bytes
};

// The code point at `at` of valid UTF-8.
[[nodiscard]] inline DecodedChar decode_char(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {((lead & 0x1F) << 6) | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) {
    return {((lead & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F), 3};
  }
  return {
      ((lead & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F),
      4};
}

// Start of the code point that ends before `end` (> 0) of valid UTF-8.
[[nodiscard]] inline std::size_t previous_char(std::string_view text, std::size_t end) {
  do --end;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

void append_utf8(std::string& text, char32_t code);
[[nodiscard]] bool is_valid_utf8(std::string_view text);
// Every longest beginning of a sequence that cannot go on becomes one U+FFFD, as Python's
// errors="replace" and Rust's from_utf8_lossy do.
[[nodiscard]] std::string lossy_utf8(std::string_view text);

}  // namespace onset
