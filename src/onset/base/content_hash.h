// 128 bits that name a content, for caches: equal contents have equal hashes, and that two
// different ones meet by chance can be ruled out. Fast (several GB/s), and not safe against someone
// who wants two contents to meet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace onset {

class ContentHash {
 public:
  // Each value is hashed with its length, so that "ab", "c" and "a", "bc" differ.
  ContentHash& add(std::span<const std::byte> bytes);
  ContentHash& add(std::string_view text);
  ContentHash& add(std::int64_t value);
  ContentHash& add(double value);
  ContentHash& add(std::span<const std::int64_t> values);

  // 32 hexadecimal digits.
  [[nodiscard]] std::string hex() const;

 private:
  void add_word(std::uint64_t word);

  std::array<std::uint64_t, 2> state_{0x243F6A8885A308D3U, 0x13198A2E03707344U};
};

}  // namespace onset
