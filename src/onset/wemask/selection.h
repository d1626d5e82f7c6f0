// Choosing the dims of a mask. Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onset {

// The k dims with the largest |value|, or the smallest, in order of choice; the lower index first
// on ties. NaN counts as the smallest. k must be at most the number of values.
[[nodiscard]] std::vector<std::int64_t> largest_dims(std::span<const float> values, std::int64_t k);
[[nodiscard]] std::vector<std::int64_t> smallest_dims(std::span<const float> values,
                                                      std::int64_t k);

// k different dims below `hidden`, by (seed, layer) alone: the same on every machine. A larger k
// begins with the dims of a smaller one.
[[nodiscard]] std::vector<std::int64_t> random_dims(std::uint64_t seed, std::int64_t layer,
                                                    std::int64_t hidden, std::int64_t k);

// |A and B| / |A or B|; 1 for two empty sets.
[[nodiscard]] double jaccard(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

}  // namespace onset
