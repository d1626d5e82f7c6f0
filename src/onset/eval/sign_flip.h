// The paired permutation test: signs of the differences flipped. Torch-free.
#pragma once

#include <cstdint>
#include <span>

namespace onset {

struct SignFlipTest {
  double p = 1;            // two-sided, by |sum|
  bool exact = true;       // over all flips; otherwise over flips drawn at random
  std::int64_t flips = 0;  // how many were looked at
};

// Where neither run is better, an item's two scores might as well have come the other way round, so
// every pattern of signs of the differences is as likely as another (Fisher 1935, "The Design of
// Experiments", section 21). p = share of patterns whose |sum| is at least that of the data; of
// drawn patterns (1 + hits) / (1 + flips), which is never 0 (Phipson and Smyth 2010).
// Differences of 0 change nothing. Up to `most_exact` others all patterns are looked at. For scores
// of 0 and 1 the exact test is McNemar's.
inline constexpr std::int64_t most_exact = 20;
[[nodiscard]] SignFlipTest sign_flip_test(std::span<const double> differences, std::int64_t flips,
                                          std::uint64_t seed);

}  // namespace onset
