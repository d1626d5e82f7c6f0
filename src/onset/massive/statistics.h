// Order statistics of a state [T, D]: the largest entries and the median. Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onset/massive/scan.h"

namespace onset {

// A view of one prompt's state, row-major.
struct StateView {
  std::span<const float> values;  // T * D
  std::int64_t hidden = 0;        // D

  [[nodiscard]] StateEntry entry(std::size_t index) const {
    return {.token = static_cast<std::int64_t>(index) / hidden,
            .dim = static_cast<std::int64_t>(index) % hidden,
            .value = values[index]};
  }
};

// Lower median of |x|: the element of rank floor((n - 1) / 2), as torch.median. n >= 1.
[[nodiscard]] float lower_median_abs(std::span<const float> values);

// The `count` entries largest by |value| (all, if there are fewer), in falling order; ties in
// (token, dim) order.
[[nodiscard]] std::vector<StateEntry> largest_entries(const StateView& state, std::int64_t count);

// Entries with |value| > threshold, in falling order, at most `limit` of them; `total` gets their
// number.
[[nodiscard]] std::vector<StateEntry> entries_above(const StateView& state, double threshold,
                                                    std::int64_t limit, std::int64_t& total);

// The dim of the largest |value| of each row; the lowest on ties.
[[nodiscard]] std::vector<std::int64_t> largest_dims(const StateView& state);

// Index of the first NaN or infinity, or -1.
[[nodiscard]] std::int64_t first_not_finite(std::span<const float> values);

}  // namespace onset
