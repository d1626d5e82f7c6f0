#include "onset/eval/binomial.h"

#include <algorithm>
#include <cmath>

#include "onset/eval/normal.h"

namespace onset {
namespace {

// Terms below this share of the sum are left out.
constexpr double negligible = 1e-18;

// pmf(k) + pmf(k - 1) + .. + pmf(0): the terms fall when k is below the mean.
double lower_tail(std::int64_t k, std::int64_t n, double p) {
  double term = binomial_pmf(k, n, p);
  double sum = term;
  const double odds = (1 - p) / p;
  for (std::int64_t i = k; i > 0 && term > negligible * sum; --i) {
    term *= odds * static_cast<double>(i) / static_cast<double>(n - i + 1);
    sum += term;
  }
  return sum;
}

}  // namespace

double binomial_pmf(std::int64_t k, std::int64_t n, double p) {
  if (k < 0 || k > n) return 0;
  if (p <= 0) return k == 0 ? 1 : 0;
  if (p >= 1) return k == n ? 1 : 0;
  const auto count = static_cast<double>(n);
  const auto hits = static_cast<double>(k);
  return std::exp(std::lgamma(count + 1) - std::lgamma(hits + 1) - std::lgamma(count - hits + 1) +
                  hits * std::log(p) + (count - hits) * std::log1p(-p));
}

double binomial_cdf(std::int64_t k, std::int64_t n, double p) {
  if (k < 0) return 0;
  if (k >= n || p <= 0) return 1;
  if (p >= 1) return 0;
  if (static_cast<double>(k) < static_cast<double>(n) * p) {
    return std::min(1.0, lower_tail(k, n, p));
  }
  return std::max(0.0, 1 - lower_tail(n - k - 1, n, 1 - p));
}

Interval wilson_interval(std::int64_t k, std::int64_t n, double alpha) {
  const double z = normal_quantile(1 - alpha / 2);
  const auto count = static_cast<double>(n);
  const double share = static_cast<double>(k) / count;
  const double middle = share + z * z / (2 * count);
  const double half = z * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  const double scale = 1 + z * z / count;
  return {.low = k == 0 ? 0 : (middle - half) / scale,
          .high = k == n ? 1 : (middle + half) / scale};
}

}  // namespace onset
