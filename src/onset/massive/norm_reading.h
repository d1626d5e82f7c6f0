// The numbers of one vector before and after a norm's gain. Torch-free; inside the massive room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onset/massive/norm_gain.h"

namespace onset {

// p_d = v_d^2 / sum v^2; all 0 for a vector of zeros.
[[nodiscard]] std::vector<double> energy(std::span<const double> values);
// Dims in falling order of |value|, the lower first on ties.
[[nodiscard]] std::vector<std::size_t> falling_order(std::span<const double> values);
// Sum of the k largest, k = 1, 2, 4, .. and all.
[[nodiscard]] std::vector<double> cumulative_shares(std::span<const double> energies);
[[nodiscard]] std::vector<std::int64_t> curve_dims(std::int64_t hidden);
// Lower median: the element of rank floor((n - 1) / 2). NaN for none.
[[nodiscard]] double lower_median(std::vector<double> values);
// Spearman's rank correlation with average ranks on ties; NaN where one side has no spread.
[[nodiscard]] double rank_correlation(std::span<const double> a, std::span<const double> b);

// All but the divergences. `gain_order`: falling_order(gain).
[[nodiscard]] NormReading read_norm(std::span<const double> x, std::span<const double> gain,
                                    std::span<const std::size_t> gain_order, double eps);
// KL(p || mean) in nats.
[[nodiscard]] double divergence(std::span<const double> p, std::span<const double> mean);
// Field by field the lower median. At least one reading.
[[nodiscard]] NormReading median_reading(const std::vector<NormReading>& readings);

// w * x, and x / rms.
[[nodiscard]] std::vector<double> times(std::span<const double> x, std::span<const double> gain);

}  // namespace onset
