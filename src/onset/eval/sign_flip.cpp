#include "onset/eval/sign_flip.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace onset {
namespace {

// Sums that differ by rounding alone are equal: this share of the sum of |differences|.
constexpr double rounding = 1e-12;

// All patterns in the order of a Gray code, one flip a step. The first sign stays: turning all of
// them round leaves |sum|.
std::int64_t count_exact(const std::vector<double>& differences, double bound) {
  const std::size_t count = differences.size();
  std::vector<double> signed_differences = differences;
  std::int64_t hits = 0;
  const std::uint64_t patterns = std::uint64_t{1} << (count - 1);
  for (std::uint64_t step = 0; step < patterns; ++step) {
    if (step > 0) {
      const auto flipped = static_cast<std::size_t>(std::countr_zero(step)) + 1;
      signed_differences[flipped] = -signed_differences[flipped];
    }
    double sum = 0;  // anew each time: a running sum would gather rounding
    for (const double value : signed_differences) sum += value;
    if (std::abs(sum) >= bound) ++hits;
  }
  return hits;
}

std::int64_t count_drawn(const std::vector<double>& differences, double bound, std::int64_t flips,
                         std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::int64_t hits = 0;
  for (std::int64_t flip = 0; flip < flips; ++flip) {
    double sum = 0;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      if (i % 64 == 0) bits = generator();
      sum += (bits & 1U) != 0 ? differences[i] : -differences[i];
      bits >>= 1U;
    }
    if (std::abs(sum) >= bound) ++hits;
  }
  return hits;
}

}  // namespace

SignFlipTest sign_flip_test(std::span<const double> differences, std::int64_t flips,
                            std::uint64_t seed) {
  std::vector<double> changed;
  double sum = 0;
  double size = 0;
  for (const double value : differences) {
    if (value == 0) continue;
    changed.push_back(value);
    sum += value;
    size += std::abs(value);
  }
  if (changed.empty()) return {.p = 1, .exact = true, .flips = 1};
  const double bound = std::abs(sum) - rounding * size;
  if (static_cast<std::int64_t>(changed.size()) <= most_exact) {
    const auto patterns = std::int64_t{1} << (changed.size() - 1);
    const std::int64_t hits = count_exact(changed, bound);
    return {.p = static_cast<double>(hits) / static_cast<double>(patterns),
            .exact = true,
            .flips = patterns * 2};
  }
  const std::int64_t hits = count_drawn(changed, bound, flips, seed);
  return {.p = static_cast<double>(hits + 1) / static_cast<double>(flips + 1),
          .exact = false,
          .flips = flips};
}

}  // namespace onset
