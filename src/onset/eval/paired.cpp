#include "onset/eval/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "onset/eval/power.h"
#include "onset/eval/sign_flip.h"

namespace onset {
namespace {

bool is_binary(const ScorePair& pair) {
  const auto right_or_wrong = [](double score) { return score == 0 || score == 1; };
  return right_or_wrong(pair.a) && right_or_wrong(pair.b) && pair.weight == 1;
}

void count(PairedResult& result, std::span<const ScorePair> pairs) {
  result.n = static_cast<std::int64_t>(pairs.size());
  result.binary = std::all_of(pairs.begin(), pairs.end(), is_binary);
  double weight = 0;
  for (const ScorePair& pair : pairs) {
    result.a += pair.a;
    result.b += pair.b;
    weight += pair.weight;
    if (pair.b > pair.a) ++result.wins;
    if (pair.b < pair.a) ++result.losses;
    if (pair.a == 1 && pair.b == 1) ++result.both_right;
  }
  if (!result.binary) result.both_right = 0;
  result.a /= weight;
  result.b /= weight;
}

void compare_binary(PairedResult& result, const PairedOptions& options) {
  const std::int64_t right_a = result.both_right + result.losses;
  const std::int64_t right_b = result.both_right + result.wins;
  result.a_interval = wilson_interval(right_a, result.n, options.alpha);
  result.b_interval = wilson_interval(right_b, result.n, options.alpha);
  result.difference =
      static_cast<double>(result.wins - result.losses) / static_cast<double>(result.n);
  const McNemarTest test = mcnemar_test(result.wins, result.losses);
  result.test = PairedTest::mcnemar_exact;
  result.p = test.p;
  result.mid_p = test.mid_p;
  if (result.wins + result.losses < few_changes) {
    result.method = IntervalMethod::bonett_price;
    result.interval = bonett_price_interval(result.wins, result.losses, result.n, options.alpha);
  }
  result.detectable = detectable_share(result.n, result.wins + result.losses,
                                       {.alpha = options.alpha, .power = options.power});
}

// Standard error of a ratio of sums, by its linear part (Cochran 1977, "Sampling Techniques", eq.
// 6.13); with weights of 1 it is the standard error of a mean.
double standard_error(const std::vector<double>& differences, const std::vector<double>& weights,
                      double ratio) {
  double squares = 0;
  double weight = 0;
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const double residual = differences[i] - ratio * weights[i];
    squares += residual * residual;
    weight += weights[i];
  }
  const auto n = static_cast<double>(differences.size());
  return std::sqrt(squares * n / (n - 1)) / weight;
}

}  // namespace

PairedResult compare_paired(std::span<const ScorePair> pairs, const PairedOptions& options) {
  PairedResult result;
  count(result, pairs);
  std::vector<double> differences;
  std::vector<double> weights;
  for (const ScorePair& pair : pairs) {
    differences.push_back(pair.b - pair.a);
    weights.push_back(pair.weight);
  }
  result.bootstrap = bootstrap_difference(
      differences, weights,
      {.resamples = options.resamples, .seed = options.seed, .alpha = options.alpha});
  result.difference = result.bootstrap.estimate;
  if (result.n > 1) result.interval = result.bootstrap.bca;
  if (result.binary) {
    compare_binary(result, options);
    return result;
  }
  const SignFlipTest test = sign_flip_test(differences, options.resamples, options.seed);
  result.test = test.exact ? PairedTest::sign_flip_exact : PairedTest::sign_flip_sampled;
  result.p = test.p;
  result.flips = test.flips;
  if (result.n > 1) {
    const double error = standard_error(differences, weights, result.difference);
    const double found = detectable_mean(error, {.alpha = options.alpha, .power = options.power});
    if (std::isfinite(found)) result.detectable = found;
  }
  return result;
}

}  // namespace onset
