#include "onset/eval/mcnemar.h"

#include <algorithm>
#include <cmath>

#include "onset/eval/binomial.h"
#include "onset/eval/normal.h"

namespace onset {
namespace {

// The changed items beyond this many standard deviations are left out of the power's sum.
constexpr double deviations = 9;

// The largest k with 2 P(X <= k) <= alpha of X ~ Binomial(changed, 1/2); -1 where there is none.
// The search begins at `from` if that is not above it.
std::int64_t critical_losses(std::int64_t changed, double alpha, std::int64_t from) {
  const auto refused = [&](std::int64_t k) {
    return 2 * k < changed && 2 * binomial_cdf(k, changed, 0.5) <= alpha;
  };
  std::int64_t k = from >= 0 && refused(from) ? from : -1;
  while (refused(k + 1)) ++k;
  return k;
}

// Near that k from below: the normal tail, two standard deviations lower.
std::int64_t critical_guess(std::int64_t changed, double alpha) {
  const double deviation = std::sqrt(static_cast<double>(changed)) / 2;
  const double z = normal_quantile(1 - alpha / 2);
  return static_cast<std::int64_t>(static_cast<double>(changed) / 2 - (z + 2) * deviation);
}

}  // namespace

McNemarTest mcnemar_test(std::int64_t wins, std::int64_t losses) {
  McNemarTest test{.wins = wins, .losses = losses};
  if (wins == losses) return test;
  const std::int64_t changed = wins + losses;
  const std::int64_t fewer = std::min(wins, losses);
  const double tail = binomial_cdf(fewer, changed, 0.5);
  test.p = std::min(1.0, 2 * tail);
  test.mid_p = std::min(1.0, 2 * tail - binomial_pmf(fewer, changed, 0.5));
  return test;
}

double mcnemar_power(std::int64_t n, double win, double loss, double alpha) {
  const double change = std::min(1.0, win + loss);
  if (n <= 0 || change <= 0) return 0;
  const double share = win / (win + loss);
  const double mean = static_cast<double>(n) * change;
  const double reach = deviations * std::sqrt(mean * (1 - change)) + deviations;
  const auto first = static_cast<std::int64_t>(std::max(0.0, std::floor(mean - reach)));
  const auto last = std::min(n, static_cast<std::int64_t>(std::ceil(mean + reach)));
  double power = 0;
  std::int64_t critical = critical_guess(first, alpha);  // grows with the number of changed items
  for (std::int64_t changed = first; changed <= last; ++changed) {
    critical = critical_losses(changed, alpha, critical);
    if (critical < 0) continue;
    const double refused =
        binomial_cdf(critical, changed, 1 - share) + binomial_cdf(critical, changed, share);
    power += binomial_pmf(changed, n, change) * refused;
  }
  return std::min(1.0, power);
}

Interval bonett_price_interval(std::int64_t wins, std::int64_t losses, std::int64_t n,
                               double alpha) {
  const auto count = static_cast<double>(n + 2);
  const double win = static_cast<double>(wins + 1) / count;
  const double loss = static_cast<double>(losses + 1) / count;
  const double difference = win - loss;
  const double half =
      normal_quantile(1 - alpha / 2) * std::sqrt((win + loss - difference * difference) / count);
  return {.low = std::max(-1.0, difference - half), .high = std::min(1.0, difference + half)};
}

}  // namespace onset
