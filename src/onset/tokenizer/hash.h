// A fast hash of short strings for the tables of the tokenizer; not for storage, and not safe
// against chosen keys.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace onset {

[[nodiscard]] inline std::uint64_t mix_bits(std::uint64_t value) {
  value *= 0x9E3779B97F4A7C15U;
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93U;
  return value ^ (value >> 32);
}

[[nodiscard]] inline std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  std::size_t at = 0;
  std::uint64_t word = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::memcpy(&word, bytes.data() + at, 8);
    hash = mix_bits(hash ^ word);
  }
  word = 0;
  for (std::size_t left = at; left < bytes.size(); ++left) {
    word = (word << 8) | static_cast<unsigned char>(bytes[left]);
  }
  return mix_bits(hash ^ word);
}

}  // namespace onset
