// The paired bootstrap of a difference between two runs. Torch-free.
#pragma once

#include <cstdint>
#include <span>

#include "onset/eval/binomial.h"

namespace onset {

struct BootstrapOptions {
  std::int64_t resamples = 10'000;
  std::uint64_t seed = 0;
  double alpha = 0.05;
};

struct BootstrapResult {
  double estimate = 0;        // of the items as they are
  double standard_error = 0;  // standard deviation of the resampled estimates
  Interval percentile;  // the alpha / 2 and 1 - alpha / 2 quantiles of the resampled estimates
  // Bias-corrected and accelerated (Efron 1987, "Better Bootstrap Confidence Intervals"): the
  // quantiles moved by the estimate's median bias and, with the jackknife's skewness, by how much
  // its standard error changes with it.
  Interval bca;
};

// The estimate is sum(differences) / sum(weights), the mean where all weights are 1. A resample
// draws as many items as there are, with replacement, each with its weight: items stay paired.
// Draws come from std::mt19937_64 begun with the seed, so that a result depends on the values,
// their order and the options alone. Quantiles between two resamples are interpolated linearly.
// Sizes agree, at least one item, weights above 0, at least one resample.
[[nodiscard]] BootstrapResult bootstrap_difference(std::span<const double> differences,
                                                   std::span<const double> weights,
                                                   const BootstrapOptions& options);

}  // namespace onset
