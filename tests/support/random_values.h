// Numbers for tests of kernels, and bfloat16 by another route than theirs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace onset::testing {

inline std::vector<float> normal_values(std::int64_t count, std::mt19937& random) {
  std::normal_distribution<float> value;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = value(random);
  return values;
}

inline std::vector<float> normal_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  return normal_values(count, random);
}

// Of a positive or negative number that is neither NaN nor near the end of the range: the upper
// half, one more where the lower half is above its middle, or at it and the upper half is odd.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t low = bits & 0xffffU;
  const std::uint32_t high = bits >> 16U;
  const bool up = low > 0x8000U || (low == 0x8000U && (high & 1U) != 0);
  return static_cast<std::uint16_t>(high + (up ? 1U : 0U));
}

inline float rounded(float value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(to_bf16(value)) << 16U);
}

}  // namespace onset::testing
