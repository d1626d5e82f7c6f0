#include "onset/massive/norm_reading.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace onset {
namespace {

double norm_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Ranks from 0, the mean of their places where values are equal.
std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + end - 1) / 2.0;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
    begin = end;
  }
  return ranks;
}

Concentration concentration(std::span<const double> energies,
                            std::span<const std::size_t> gain_order) {
  std::vector<double> sorted(energies.begin(), energies.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto largest = [&](std::size_t count) {
    count = std::min(count, sorted.size());
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count),
                           0.0);
  };
  const auto of_gain = [&](std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < std::min(count, gain_order.size()); ++i) {
      sum += energies[gain_order[i]];
    }
    return sum;
  };
  double squares = 0;
  for (const double p : energies) squares += p * p;
  return {.top1 = largest(1),
          .top4 = largest(4),
          .top16 = largest(16),
          .gain_top1 = of_gain(1),
          .gain_top4 = of_gain(4),
          .gain_top16 = of_gain(16),
          .participation = squares > 0 ? 1.0 / squares : 0.0,
          .divergence = std::numeric_limits<double>::quiet_NaN()};
}

}  // namespace

std::vector<double> energy(std::span<const double> values) {
  const double norm = norm_of(values);
  std::vector<double> result(values.size(), 0.0);
  if (norm == 0) return result;
  for (std::size_t d = 0; d < values.size(); ++d) result[d] = std::pow(values[d] / norm, 2);
  return result;
}

std::vector<std::size_t> falling_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::fabs(values[a]) > std::fabs(values[b]);
  });
  return order;
}

std::vector<std::int64_t> curve_dims(std::int64_t hidden) {
  std::vector<std::int64_t> dims;
  for (std::int64_t k = 1; k < hidden; k *= 2) dims.push_back(k);
  dims.push_back(hidden);
  return dims;
}

std::vector<double> cumulative_shares(std::span<const double> energies) {
  std::vector<double> sorted(energies.begin(), energies.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<double> shares;
  double sum = 0;
  std::size_t used = 0;
  for (const std::int64_t k : curve_dims(std::ssize(energies))) {
    while (used < static_cast<std::size_t>(k)) sum += sorted[used++];
    shares.push_back(sum);
  }
  return shares;
}

double lower_median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = average_ranks(a);
  const std::vector<double> y = average_ranks(b);
  const double mean = static_cast<double>(x.size() - 1) / 2.0;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

std::vector<double> times(std::span<const double> x, std::span<const double> gain) {
  std::vector<double> product(x.size());
  for (std::size_t d = 0; d < x.size(); ++d) product[d] = x[d] * gain[d];
  return product;
}

NormReading read_norm(std::span<const double> x, std::span<const double> gain,
                      std::span<const std::size_t> gain_order, double eps) {
  NormReading reading;
  const double size = norm_of(x);
  reading.input_norm = size;
  reading.rms = std::sqrt(size * size / static_cast<double>(x.size()) + eps);
  const std::vector<double> product = times(x, gain);
  const double scaled = norm_of(product);
  reading.output_norm = scaled / reading.rms;
  reading.amplification = scaled / size;
  const std::vector<double> before = energy(x);
  reading.before = concentration(before, gain_order);
  reading.after = concentration(energy(product), gain_order);
  std::vector<double> sizes(gain.size());
  for (std::size_t d = 0; d < gain.size(); ++d) sizes[d] = std::fabs(gain[d]);
  reading.rank_correlation = rank_correlation(before, sizes);
  return reading;
}

double divergence(std::span<const double> p, std::span<const double> mean) {
  double sum = 0;
  for (std::size_t d = 0; d < p.size(); ++d) {
    if (p[d] > 0) sum += p[d] * std::log(p[d] / mean[d]);
  }
  return sum;
}

NormReading median_reading(const std::vector<NormReading>& readings) {
  const auto median = [&](auto field) {
    std::vector<double> values;
    values.reserve(readings.size());
    for (const NormReading& reading : readings) values.push_back(field(reading));
    return lower_median(std::move(values));
  };
  NormReading result;
  for (double NormReading::*field :
       {&NormReading::rms, &NormReading::amplification, &NormReading::input_norm,
        &NormReading::output_norm, &NormReading::rank_correlation}) {
    result.*field = median([field](const NormReading& r) { return r.*field; });
  }
  constexpr std::array fields{&Concentration::top1,          &Concentration::top4,
                              &Concentration::top16,         &Concentration::gain_top1,
                              &Concentration::gain_top4,     &Concentration::gain_top16,
                              &Concentration::participation, &Concentration::divergence};
  for (double Concentration::*field : fields) {
    result.before.*field = median([field](const NormReading& r) { return r.before.*field; });
    result.after.*field = median([field](const NormReading& r) { return r.after.*field; });
  }
  return result;
}

}  // namespace onset
