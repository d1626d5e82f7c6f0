#include "onset/eval/power.h"

#include <algorithm>

#include "onset/eval/mcnemar.h"
#include "onset/eval/normal.h"

namespace onset {
namespace {

constexpr double bisected_to = 1e-6;

}  // namespace

std::optional<double> detectable_share(std::int64_t n, std::int64_t changed,
                                       const PowerOptions& options) {
  const double changing = static_cast<double>(changed) / static_cast<double>(n);
  const auto found = [&](double difference) {
    const double change = std::max(changing, difference);
    return mcnemar_power(n, (change + difference) / 2, (change - difference) / 2, options.alpha) >=
           options.power;
  };
  if (!found(1)) return std::nullopt;
  double low = 0;
  double high = 1;
  while (high - low > bisected_to) {
    const double middle = (low + high) / 2;
    (found(middle) ? high : low) = middle;
  }
  return high;
}

double detectable_mean(double standard_error, const PowerOptions& options) {
  return (normal_quantile(1 - options.alpha / 2) + normal_quantile(options.power)) * standard_error;
}

}  // namespace onset
