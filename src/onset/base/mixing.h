// Small functions of 64 bits that give the same everywhere: numbers from seeds, hashes of names.
#pragma once

#include <cstdint>
#include <string_view>

namespace onset {

// The increment and the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
inline constexpr std::uint64_t split_mix_increment = 0x9E3779B97F4A7C15U;
[[nodiscard]] constexpr std::uint64_t split_mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// A seed of its own for each number.
[[nodiscard]] constexpr std::uint64_t derived_seed(std::uint64_t seed, std::int64_t number) {
  return split_mix(seed + split_mix_increment * (static_cast<std::uint64_t>(number) + 1));
}

// The generator: one full period of 64 bits.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t state) : state_(state) {}

  std::uint64_t next() { return split_mix(state_ += split_mix_increment); }
  // Below `bound`, every number equally likely: draws beyond the last whole multiple are repeated.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t rest = (~std::uint64_t{0} % bound + 1) % bound;
    std::uint64_t drawn = next();
    while (drawn > ~std::uint64_t{0} - rest) drawn = next();
    return drawn % bound;
  }
  // In [0, 1), with 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

// FNV-1a (Fowler, Noll and Vo), 64 bits: begins with fnv1a_begin, or with a seed.
inline constexpr std::uint64_t fnv1a_begin = 0xCBF29CE484222325U;
[[nodiscard]] constexpr std::uint64_t fnv1a(std::uint64_t hash, unsigned char byte) {
  return (hash ^ byte) * 0x100000001B3U;
}
[[nodiscard]] constexpr std::uint64_t fnv1a(std::uint64_t hash, std::string_view text) {
  for (const char byte : text) hash = fnv1a(hash, static_cast<unsigned char>(byte));
  return hash;
}

}  // namespace onset
