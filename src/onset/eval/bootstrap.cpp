#include "onset/eval/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "onset/eval/index_draws.h"
#include "onset/eval/normal.h"

namespace onset {
namespace {

double sum_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Of sorted values, between two of them linearly; 0 <= share <= 1.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

std::vector<double> resampled(std::span<const double> differences, std::span<const double> weights,
                              const BootstrapOptions& options) {
  const auto items = static_cast<std::uint32_t>(differences.size());
  const bool even = std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; });
  IndexDraws draws(options.seed);
  std::vector<double> estimates(static_cast<std::size_t>(options.resamples));
  for (double& estimate : estimates) {
    double sum = 0;
    double weight = even ? items : 0;
    for (std::uint32_t i = 0; i < items; ++i) {
      const std::uint32_t drawn = draws.below(items);
      sum += differences[drawn];
      if (!even) weight += weights[drawn];
    }
    estimate = sum / weight;
  }
  return estimates;
}

// Efron 1987, eq. 6.6, by the jackknife: the skewness of the estimates that leave one item out.
double acceleration(std::span<const double> differences, std::span<const double> weights) {
  const double sum = sum_of(differences);
  const double weight = sum_of(weights);
  std::vector<double> without(differences.size());
  for (std::size_t i = 0; i < without.size(); ++i) {
    without[i] = (sum - differences[i]) / (weight - weights[i]);
  }
  const double mean = sum_of(without) / static_cast<double>(without.size());
  double squares = 0;
  double cubes = 0;
  for (const double value : without) {
    const double below = mean - value;
    squares += below * below;
    cubes += below * below * below;
  }
  // Where all items have one difference only rounding is left.
  return squares > 1e-30 * (mean * mean + 1e-300) ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

// `tie`: estimates so near each other differ by rounding alone.
Interval bca_interval(const std::vector<double>& sorted, double estimate, double tie,
                      double accelerated, double alpha) {
  const auto first = std::lower_bound(sorted.begin(), sorted.end(), estimate - tie);
  const auto last = std::upper_bound(sorted.begin(), sorted.end(), estimate + tie);
  const double below = static_cast<double>(first - sorted.begin()) +
                       static_cast<double>(last - first) / 2;  // ties count half
  const double bias = normal_quantile(below / static_cast<double>(sorted.size()));
  const auto at = [&](double share) {
    if (!std::isfinite(bias)) return quantile(sorted, share);
    const double z = bias + normal_quantile(share);
    const double divisor = 1 - accelerated * z;
    return quantile(sorted, divisor > 0 ? normal_cdf(bias + z / divisor) : (z > 0 ? 1.0 : 0.0));
  };
  return {.low = at(alpha / 2), .high = at(1 - alpha / 2)};
}

double deviation(const std::vector<double>& values) {
  const double mean = sum_of(values) / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

BootstrapResult bootstrap_difference(std::span<const double> differences,
                                     std::span<const double> weights,
                                     const BootstrapOptions& options) {
  std::vector<double> estimates = resampled(differences, weights, options);
  std::sort(estimates.begin(), estimates.end());
  const double estimate = sum_of(differences) / sum_of(weights);
  const double accelerated = differences.size() < 2 ? 0 : acceleration(differences, weights);
  double size = 0;
  for (const double difference : differences) size += std::abs(difference);
  const double tie = 1e-12 * size / sum_of(weights);
  return {.estimate = estimate,
          .standard_error = deviation(estimates),
          .percentile = {.low = quantile(estimates, options.alpha / 2),
                         .high = quantile(estimates, 1 - options.alpha / 2)},
          .bca = bca_interval(estimates, estimate, tie, accelerated, options.alpha)};
}

}  // namespace onset
