#include "onset/tokenizer/byte_level.h"

#include <array>

#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// Printable bytes stand for themselves, the others for U+0100 and up in their order.
constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::uint16_t, 256> char_of_byte{};
  std::array<std::int16_t, 0x144> byte_of_char{};  // -1: not of the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.byte_of_char) byte = -1;
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto code = stands_for_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
    alphabet.char_of_byte[byte] = code;
    alphabet.byte_of_char[code] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet alphabet = make_alphabet();

}  // namespace

bool append_bytes_of(std::string_view spelled, std::string& bytes) {
  const std::size_t before = bytes.size();
  bytes.resize(before + spelled.size());
  char* out = bytes.data() + before;
  for (std::size_t at = 0; at < spelled.size();) {
    const DecodedChar next = decode_char(spelled, at);
    const int byte =
        next.code < alphabet.byte_of_char.size() ? alphabet.byte_of_char[next.code] : -1;
    if (byte < 0) {
      bytes.resize(before);
      return false;
    }
    *out++ = static_cast<char>(byte);
    at += next.length;
  }
  bytes.resize(static_cast<std::size_t>(out - bytes.data()));
  return true;
}

std::string spelling_of(std::string_view bytes) {
  std::string spelled;
  spelled.reserve(bytes.size());
  for (const char byte : bytes) {
    append_utf8(spelled, alphabet.char_of_byte[static_cast<unsigned char>(byte)]);
  }
  return spelled;
}

}  // namespace onset
