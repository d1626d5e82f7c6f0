// The bootstrap, the sign-flip test, Holm's correction and the comparison made of them. Expected
// values are scipy 1.17's or come from looking at every case.

#include "onset/eval/paired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "onset/eval/holm.h"
#include "onset/eval/sign_flip.h"

namespace onset {
namespace {

const std::vector<double> eight{0.31, -0.127, 0.823, 0.0519, -0.4071, 1.713, 0.2377, 0.6133};
const std::vector<double> ones(8, 1.0);

// scipy.stats.bootstrap with 1,000,000 resamples; the tolerance is what resampling leaves.
TEST(Bootstrap, MeansHaveScipysIntervals) {
  const auto result = bootstrap_difference(eight, ones, {.resamples = 200'000, .seed = 3});
  EXPECT_NEAR(result.estimate, 0.40185, 1e-15);
  EXPECT_NEAR(result.standard_error, 0.21769, 0.001);
  EXPECT_NEAR(result.percentile.low, 0.011575, 0.004);
  EXPECT_NEAR(result.percentile.high, 0.8582, 0.004);
  EXPECT_NEAR(result.bca.low, 0.058487, 0.004);
  EXPECT_NEAR(result.bca.high, 0.944688, 0.004);
}

TEST(Bootstrap, RatiosHaveScipysIntervals) {
  const std::vector<double> weights{3, 1, 2, 5, 1, 4, 2, 6};
  const auto result = bootstrap_difference(eight, weights, {.resamples = 200'000, .seed = 4});
  EXPECT_NEAR(result.estimate, 0.13395, 1e-15);
  EXPECT_NEAR(result.standard_error, 0.06868, 0.0005);
  EXPECT_NEAR(result.percentile.low, 0.004644, 0.002);
  EXPECT_NEAR(result.percentile.high, 0.274323, 0.002);
  EXPECT_NEAR(result.bca.low, 0.025154, 0.002);
  EXPECT_NEAR(result.bca.high, 0.30469, 0.002);
}

// All 5^5 resamples of five items against drawn ones: each quantile lies between the exact ones a
// little to either side.
TEST(Bootstrap, DrawsAgreeWithAllResamples) {
  const std::vector<double> values{-1, 0, 0, 1, 3};
  std::vector<double> all;
  for (int code = 0; code < 3125; ++code) {
    double sum = 0;
    for (int i = 0, rest = code; i < 5; ++i, rest /= 5)
      sum += values[static_cast<std::size_t>(rest % 5)];
    all.push_back(sum / 5);
  }
  std::sort(all.begin(), all.end());
  const auto exact = [&](double share) { return all[static_cast<std::size_t>(share * 3124)]; };
  const auto result = bootstrap_difference(values, std::vector<double>(5, 1.0),
                                           {.resamples = 50'000, .seed = 9, .alpha = 0.1});
  EXPECT_GE(result.percentile.low, exact(0.045));
  EXPECT_LE(result.percentile.low, exact(0.055));
  EXPECT_GE(result.percentile.high, exact(0.945));
  EXPECT_LE(result.percentile.high, exact(0.955));
}

TEST(Bootstrap, ASeedGivesOneResultAndAnotherSeedAnother) {
  const auto one = bootstrap_difference(eight, ones, {.resamples = 1000, .seed = 5});
  const auto same = bootstrap_difference(eight, ones, {.resamples = 1000, .seed = 5});
  const auto other = bootstrap_difference(eight, ones, {.resamples = 1000, .seed = 6});
  EXPECT_EQ(one.bca.low, same.bca.low);
  EXPECT_EQ(one.standard_error, same.standard_error);
  EXPECT_NE(one.standard_error, other.standard_error);
}

TEST(Bootstrap, EqualDifferencesHaveNoSpread) {
  for (const double value : {0.0, 0.1, -3.7}) {
    const std::vector<double> values(7, value);
    const auto result =
        bootstrap_difference(values, std::vector<double>(7, 1.0), {.resamples = 500});
    EXPECT_NEAR(result.bca.low, value, 1e-14);
    EXPECT_NEAR(result.bca.high, value, 1e-14);
  }
  const auto one = bootstrap_difference(std::vector<double>{2.0}, std::vector<double>{1.0}, {});
  EXPECT_EQ(one.bca.low, 2);
  EXPECT_EQ(one.bca.high, 2);
}

TEST(SignFlip, ExactIsTheShareOfAllPatterns) {
  const auto test = sign_flip_test(eight, 10'000, 0);
  EXPECT_TRUE(test.exact);
  EXPECT_EQ(test.flips, 256);
  EXPECT_NEAR(test.p, 0.1171875, 1e-15);  // scipy.stats.permutation_test: 30 of 256
}

TEST(SignFlip, OfScoresOfZeroAndOneItIsMcNemars) {
  for (const auto& [wins, losses] : {std::pair{0, 0}, {1, 0}, {4, 4}, {9, 2}, {3, 14}, {20, 0}}) {
    std::vector<double> differences(static_cast<std::size_t>(wins), 1.0);
    differences.resize(differences.size() + static_cast<std::size_t>(losses), -1.0);
    differences.resize(differences.size() + 5, 0.0);
    const auto test = sign_flip_test(differences, 100, 0);
    EXPECT_TRUE(test.exact);
    EXPECT_NEAR(test.p, mcnemar_test(wins, losses).p, 1e-12) << wins << ", " << losses;
  }
}

TEST(SignFlip, DrawnPatternsComeNearTheExactShare) {
  // 40 wins and 22 losses of size 1: exact by McNemar.
  std::vector<double> differences(40, 1.0);
  differences.resize(62, -1.0);
  const auto test = sign_flip_test(differences, 100'000, 7);
  EXPECT_FALSE(test.exact);
  EXPECT_EQ(test.flips, 100'000);
  EXPECT_NEAR(test.p, mcnemar_test(40, 22).p, 0.0015);  // three standard errors of .03
  // What never comes up is not impossible.
  const auto clear = sign_flip_test(std::vector<double>(60, 1.0), 999, 7);
  EXPECT_EQ(clear.p, 0.001);
}

TEST(SignFlip, SumsThatDifferByRoundingAreEqual) {
  // .1 + .2 - .3 is 5.6e-17 as floating-point numbers: all 8 patterns have |sum| >= 0.
  const auto test = sign_flip_test(std::vector<double>{0.1, 0.2, -0.3}, 10, 0);
  EXPECT_EQ(test.p, 1);
}

TEST(Holm, StepsDown) {
  const std::vector<double> p{0.04, 0.01, 0.03, std::nan(""), 0.5};
  const auto adjusted = holm_adjusted(p);
  ASSERT_EQ(adjusted.size(), 5U);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.04);  // 4 * .01
  EXPECT_DOUBLE_EQ(adjusted[2], 0.09);  // 3 * .03
  EXPECT_DOUBLE_EQ(adjusted[0], 0.09);  // 2 * .04 = .08, not below the one before
  EXPECT_DOUBLE_EQ(adjusted[4], 0.5);
  EXPECT_TRUE(std::isnan(adjusted[3]));
  EXPECT_DOUBLE_EQ(holm_adjusted(std::vector<double>{0.6, 0.7})[0], 1);
  EXPECT_TRUE(holm_adjusted({}).empty());
}

std::vector<ScorePair> right_and_wrong(int both, int wins, int losses, int neither) {
  std::vector<ScorePair> pairs;
  pairs.insert(pairs.end(), static_cast<std::size_t>(both), {.a = 1, .b = 1});
  pairs.insert(pairs.end(), static_cast<std::size_t>(wins), {.a = 0, .b = 1});
  pairs.insert(pairs.end(), static_cast<std::size_t>(losses), {.a = 1, .b = 0});
  pairs.insert(pairs.end(), static_cast<std::size_t>(neither), {.a = 0, .b = 0});
  return pairs;
}

TEST(Paired, RightAndWrongIsCountedAndTested) {
  const auto result = compare_paired(right_and_wrong(50, 25, 9, 16), {.seed = 1});
  EXPECT_TRUE(result.binary);
  EXPECT_EQ(result.n, 100);
  EXPECT_DOUBLE_EQ(result.a, 0.59);
  EXPECT_DOUBLE_EQ(result.b, 0.75);
  EXPECT_DOUBLE_EQ(result.difference, 0.16);
  EXPECT_EQ(result.wins, 25);
  EXPECT_EQ(result.losses, 9);
  EXPECT_EQ(result.both_right, 50);
  EXPECT_EQ(result.test, PairedTest::mcnemar_exact);
  EXPECT_NEAR(result.p, 0.00904118549078703, 1e-12);
  EXPECT_EQ(result.method, IntervalMethod::bootstrap_bca);
  // The normal interval: .16 -+ 1.96 sqrt((.34 - .16^2) / 100) = .0501 to .2699.
  ASSERT_TRUE(result.interval);
  EXPECT_NEAR(result.interval->low, 0.0501, 0.011);
  EXPECT_NEAR(result.interval->high, 0.2699, 0.011);
  ASSERT_TRUE(result.detectable);
}

TEST(Paired, WithoutChangesTheIntervalStillHasAWidth) {
  const auto result = compare_paired(right_and_wrong(60, 0, 0, 40), {});
  EXPECT_EQ(result.p, 1);
  EXPECT_EQ(result.difference, 0);
  EXPECT_EQ(result.method, IntervalMethod::bonett_price);
  ASSERT_TRUE(result.interval);
  const double half = 1.959963984540054 * std::sqrt(2.0 / 102 / 102);
  EXPECT_NEAR(result.interval->low, -half, 1e-12);
  EXPECT_NEAR(result.interval->high, half, 1e-12);
}

TEST(Paired, OneItemIsNoEvidence) {
  const auto right = compare_paired(right_and_wrong(0, 1, 0, 0), {});
  EXPECT_EQ(right.p, 1);
  EXPECT_EQ(right.difference, 1);
  EXPECT_FALSE(right.detectable);
  const auto score = compare_paired(std::vector<ScorePair>{{.a = -3.5, .b = -3.0}}, {});
  EXPECT_FALSE(score.binary);
  EXPECT_EQ(score.p, 1);
  EXPECT_FALSE(score.interval);
  EXPECT_FALSE(score.detectable);
}

TEST(Paired, OtherScoresFlipSigns) {
  std::vector<ScorePair> pairs;
  for (const double difference : eight) pairs.push_back({.a = 10, .b = 10 + difference});
  const auto result = compare_paired(pairs, {});
  EXPECT_FALSE(result.binary);
  EXPECT_EQ(result.test, PairedTest::sign_flip_exact);
  EXPECT_NEAR(result.p, 0.1171875, 1e-15);
  EXPECT_EQ(result.wins, 6);
  EXPECT_EQ(result.losses, 2);
  EXPECT_NEAR(result.difference, 0.40185, 1e-12);
  // Standard deviation .65826 of eight.
  double squares = 0;
  for (const double value : eight) squares += (value - 0.40185) * (value - 0.40185);
  ASSERT_TRUE(result.detectable);
  EXPECT_NEAR(*result.detectable,
              std::sqrt(squares / 7 / 8) * (1.959963984540054 + 0.8416212335729143), 1e-9);
}

TEST(Paired, WeightsMakeAMeanOfWords) {
  const std::vector<ScorePair> pairs{{.a = -30, .b = -20, .weight = 10},
                                     {.a = -4, .b = -6, .weight = 2}};
  const auto result = compare_paired(pairs, {});
  EXPECT_DOUBLE_EQ(result.a, -34.0 / 12);
  EXPECT_DOUBLE_EQ(result.b, -26.0 / 12);
  EXPECT_NEAR(result.difference, 8.0 / 12, 1e-15);
  EXPECT_FALSE(result.binary);
}

}  // namespace
}  // namespace onset
