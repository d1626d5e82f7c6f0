// What difference a comparison of this size could have found. Torch-free.
#pragma once

#include <cstdint>
#include <optional>

namespace onset {

struct PowerOptions {
  double alpha = 0.05;
  double power = 0.8;
};

// Right or wrong: the smallest difference of the two shares that the exact McNemar test of n items
// would find with probability `power`, where as many items change as changed here (`changed` of n),
// or, for differences larger than that share, where all changes go one way. By bisection of
// mcnemar_power(), which needs no normal approximation. Nothing where even a difference of 1 would
// not be found (fewer than 6 items at alpha 0.05).
[[nodiscard]] std::optional<double> detectable_share(std::int64_t n, std::int64_t changed,
                                                     const PowerOptions& options);

// Any scores: (z(1 - alpha / 2) + z(power)) * standard_error, the normal approximation for a mean
// of many items. `standard_error` is that of the difference.
[[nodiscard]] double detectable_mean(double standard_error, const PowerOptions& options);

}  // namespace onset
