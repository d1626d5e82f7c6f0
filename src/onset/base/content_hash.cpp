#include "onset/base/content_hash.h"

#include <bit>
#include <cstring>

namespace onset {
namespace {

constexpr std::size_t lanes = 8;
constexpr std::size_t block_bytes = lanes * sizeof(std::uint64_t);
constexpr std::uint64_t odd_constant = 0x9E3779B97F4A7C15U;
constexpr std::uint64_t other_constant = 0xD6E8FEB86659FD93U;

std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 32;
  value *= odd_constant;
  value ^= value >> 29;
  value *= other_constant;
  return value ^ (value >> 32);
}

}  // namespace

void ContentHash::add_word(std::uint64_t word) {
  state_[0] = mixed(state_[0] ^ word);
  state_[1] = mixed((state_[1] + odd_constant) ^ std::rotl(word, 23));
}

// Lanes that do not wait for each other, each a bijection of its word in every step.
ContentHash& ContentHash::add(std::span<const std::byte> bytes) {
  add_word(bytes.size());
  std::array<std::uint64_t, lanes> lane{};
  for (std::size_t i = 0; i < lanes; ++i) lane[i] = odd_constant * (i + 1);
  std::size_t at = 0;
  std::array<std::uint64_t, lanes> words{};
  for (; at + block_bytes <= bytes.size(); at += block_bytes) {
    std::memcpy(words.data(), bytes.data() + at, block_bytes);
    for (std::size_t i = 0; i < lanes; ++i) {
      lane[i] = std::rotl(lane[i] ^ words[i], 31) * odd_constant;
    }
  }
  words = {};
  if (at < bytes.size()) std::memcpy(words.data(), bytes.data() + at, bytes.size() - at);
  for (std::size_t i = 0; i < lanes; ++i) {
    add_word(lane[i]);
    add_word(words[i]);
  }
  return *this;
}

ContentHash& ContentHash::add(std::string_view text) {
  return add(std::as_bytes(std::span(text.data(), text.size())));
}

ContentHash& ContentHash::add(std::int64_t value) {
  add_word(std::bit_cast<std::uint64_t>(value));
  return *this;
}

ContentHash& ContentHash::add(double value) {
  add_word(std::bit_cast<std::uint64_t>(value));
  return *this;
}

ContentHash& ContentHash::add(std::span<const std::int64_t> values) {
  return add(std::as_bytes(values));
}

std::string ContentHash::hex() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t word : state_) {
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(mixed(word) >> shift) & 0xFU];
  }
  return text;
}

}  // namespace onset
