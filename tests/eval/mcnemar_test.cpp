// The normal and binomial distributions, McNemar's test, Wilson's interval and power. Expected
// values are scipy 1.17's (ndtri, binom, binomtest) and exact fractions, or sums over all outcomes.

#include "onset/eval/mcnemar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>

#include "onset/eval/normal.h"
#include "onset/eval/power.h"

namespace onset {
namespace {

struct Quantile {
  double p;
  double z;
};

TEST(Normal, QuantilesAreThoseOfTheTables) {
  const Quantile table[] = {
      {1e-300, -37.0470962993612},   {1e-20, -9.262340089798409},   {1e-10, -6.361340902404056},
      {0.001, -3.090232306167813},   {0.025, -1.9599639845400545},  {0.05, -1.6448536269514729},
      {0.0749, -1.4402382675279635}, {0.0751, -1.4388253927525403}, {0.2, -0.8416212335729142},
      {0.4, -0.2533471031357997},    {0.8, 0.8416212335729143},     {0.925, 1.4395314709384563},
      {0.975, 1.959963984540054},    {0.999999, 4.753424308817087},
  };
  for (const auto& [p, z] : table) EXPECT_NEAR(normal_quantile(p), z, 1e-14 * std::abs(z)) << p;
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_EQ(normal_quantile(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(normal_quantile(1), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(normal_quantile(1.1)));
  EXPECT_TRUE(std::isnan(normal_quantile(std::nan(""))));
}

TEST(Normal, CdfUndoesTheQuantile) {
  for (const double p : {1e-12, 0.001, 0.3, 0.5, 0.7, 0.999}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)), p, 1e-14) << p;
  }
}

TEST(Binomial, CdfIsScipys) {
  const auto expect = [](std::int64_t k, std::int64_t n, double p, double expected) {
    EXPECT_NEAR(binomial_cdf(k, n, p), expected, 1e-9 * expected) << k << " of " << n;
  };
  expect(0, 10, 0.3, 0.028247524900000005);
  expect(3, 10, 0.3, 0.6496107184000002);
  expect(7, 10, 0.3, 0.9984096136);
  expect(10, 10, 0.3, 1);
  expect(40, 1000, 0.06, 0.0031715295246899818);
  expect(500, 1000, 0.5, 0.5126125090891802);
  expect(5, 100'000, 0.001, 3.117381885471972e-36);
  // The upper tail of the same kind, 9.49e-21, by symmetry.
  expect(14'042 - 13'901, 14'042, 0.02, 9.489565864607496e-21);
  EXPECT_EQ(binomial_cdf(-1, 10, 0.3), 0);
  EXPECT_EQ(binomial_cdf(2, 10, 0), 1);
  EXPECT_EQ(binomial_cdf(2, 10, 1), 0);
}

TEST(Binomial, PmfAddsUpToOne) {
  for (const double p : {0.0, 0.01, 0.5, 1.0}) {
    double sum = 0;
    for (std::int64_t k = 0; k <= 50; ++k) sum += binomial_pmf(k, 50, p);
    EXPECT_NEAR(sum, 1, 1e-12) << p;
  }
  EXPECT_EQ(binomial_pmf(-1, 5, 0.5), 0);
  EXPECT_EQ(binomial_pmf(6, 5, 0.5), 0);
}

TEST(Wilson, IntervalsAreScipys) {
  const auto expect = [](std::int64_t k, std::int64_t n, double low, double high) {
    const Interval interval = wilson_interval(k, n, 0.05);
    EXPECT_NEAR(interval.low, low, 1e-12) << k << " of " << n;
    EXPECT_NEAR(interval.high, high, 1e-12) << k << " of " << n;
  };
  expect(0, 10, 0, 0.27753279986288926);
  expect(10, 10, 0.7224672001371109, 1);
  expect(1, 1, 0.20654931437723745, 1);
  expect(81, 263, 0.2552885198782742, 0.36620957698280004);
  expect(5000, 14'042, 0.34819504129556234, 0.3640329507510337);
}

TEST(McNemar, ExactAndMidPAreThoseOfTheFractions) {
  struct Row {
    std::int64_t wins, losses;
    double p, mid_p;
  };
  const Row table[] = {{0, 0, 1, 1},
                       {1, 0, 1, 0.5},
                       {3, 3, 1, 1},
                       {10, 2, 0.03857421875, 0.0224609375},
                       {2, 10, 0.03857421875, 0.0224609375},
                       {6, 0, 0.03125, 0.015625},
                       {25, 9, 0.00904118549078703, 0.0059881205670535564},
                       {120, 80, 0.0056851559967503055, 0.004660051974640122},
                       {2500, 2300, 0.004070069814069047, 0.003891589720334278}};
  for (const auto& [wins, losses, p, mid_p] : table) {
    const McNemarTest test = mcnemar_test(wins, losses);
    EXPECT_EQ(test.wins, wins);
    EXPECT_EQ(test.losses, losses);
    EXPECT_NEAR(test.p, p, 1e-11 * p) << wins << ", " << losses;
    EXPECT_NEAR(test.mid_p, mid_p, 1e-11 * mid_p) << wins << ", " << losses;
  }
}

// Every outcome of n items, one after the other: win, loss or no change.
double power_by_enumeration(std::int64_t items, double win, double loss, double alpha) {
  double power = 0;
  std::int64_t outcomes = 1;
  for (std::int64_t i = 0; i < items; ++i) outcomes *= 3;
  for (std::int64_t outcome = 0; outcome < outcomes; ++outcome) {
    double probability = 1;
    std::int64_t wins = 0;
    std::int64_t losses = 0;
    for (std::int64_t i = 0, rest = outcome; i < items; ++i, rest /= 3) {
      if (rest % 3 == 0) probability *= 1 - win - loss;
      if (rest % 3 == 1) probability *= win, ++wins;
      if (rest % 3 == 2) probability *= loss, ++losses;
    }
    // Two-sided p of the outcome as a sum of binomial coefficients over 2^changed.
    const std::int64_t changed = wins + losses;
    double tail = 0;
    double coefficient = 1;
    for (std::int64_t k = 0; k <= std::min(wins, losses); ++k) {
      tail += coefficient;
      coefficient *= static_cast<double>(changed - k) / static_cast<double>(k + 1);
    }
    if (2 * tail / std::pow(2.0, static_cast<double>(changed)) <= alpha) power += probability;
  }
  return power;
}

TEST(McNemar, PowerIsTheSumOverAllOutcomes) {
  const auto expect = [](std::int64_t n, double win, double loss, double alpha) {
    EXPECT_NEAR(mcnemar_power(n, win, loss, alpha), power_by_enumeration(n, win, loss, alpha),
                1e-12)
        << n << " items, " << win << " and " << loss << ", alpha " << alpha;
  };
  for (const std::int64_t n : {1, 5, 6, 10}) {
    expect(n, 0.4, 0.1, 0.05);
    expect(n, 0.7, 0.0, 0.05);
    expect(n, 0.3, 0.3, 0.2);
    expect(n, 0.0, 1.0, 0.1);
  }
  EXPECT_EQ(mcnemar_power(0, 0.5, 0.1, 0.05), 0);
  EXPECT_EQ(mcnemar_power(100, 0, 0, 0.05), 0);
}

// One simulated experiment of n items.
McNemarTest simulate(std::mt19937_64& generator, std::int64_t n, double win, double loss) {
  std::uniform_real_distribution<double> uniform;
  std::int64_t wins = 0;
  std::int64_t losses = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double draw = uniform(generator);
    if (draw < win) {
      ++wins;
    } else if (draw < win + loss) {
      ++losses;
    }
  }
  return mcnemar_test(wins, losses);
}

TEST(Power, TheDetectableDifferenceIsFoundFourTimesInFive) {
  constexpr std::int64_t experiments = 4000;
  std::mt19937_64 generator(11);
  for (const auto& [n, changed] : {std::pair<std::int64_t, std::int64_t>{200, 40}, {500, 12}}) {
    const auto difference = detectable_share(n, changed, {.alpha = 0.05, .power = 0.8});
    ASSERT_TRUE(difference);
    const double change =
        std::max(*difference, static_cast<double>(changed) / static_cast<double>(n));
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < experiments; ++i) {
      const auto test =
          simulate(generator, n, (change + *difference) / 2, (change - *difference) / 2);
      if (test.p <= 0.05) ++found;
    }
    // Three standard errors of a share of .8: .019.
    EXPECT_NEAR(static_cast<double>(found) / experiments, 0.8, 0.019) << n << ", " << changed;
  }
}

TEST(Power, MoreItemsDetectLessAndSixAreTheFewest) {
  const PowerOptions options{.alpha = 0.05, .power = 0.8};
  EXPECT_FALSE(detectable_share(5, 2, options)) << "5 changes one way have p = 1/16";
  ASSERT_TRUE(detectable_share(6, 0, options));
  // All six must be wins: x^6 = .8.
  EXPECT_NEAR(*detectable_share(6, 0, options), std::pow(0.8, 1.0 / 6), 2e-6);
  const double few = *detectable_share(100, 20, options);
  const double many = *detectable_share(10'000, 2000, options);
  EXPECT_LT(many, few);
  // Connor 1987: n d^2 = (1.96 sqrt(.2) + .8416 sqrt(.2 - d^2))^2 of d = .0125 gives n = 10,027.
  EXPECT_NEAR(many, 0.0125, 0.0002);
}

TEST(Power, MeansFollowTheNormalFormula) {
  EXPECT_NEAR(detectable_mean(2, {.alpha = 0.05, .power = 0.8}),
              2 * (1.959963984540054 + 0.8416212335729143), 1e-12);
}

TEST(BonettPrice, IsTheFormulaAndKeepsItsCoverage) {
  // (w, l, n) = (4, 1, 98): shares .05 and .02 of 100.
  const Interval interval = bonett_price_interval(4, 1, 98, 0.05);
  const double half = 1.959963984540054 * std::sqrt((0.05 + 0.02 - 0.03 * 0.03) / 100);
  EXPECT_NEAR(interval.low, 0.03 - half, 1e-14);
  EXPECT_NEAR(interval.high, 0.03 + half, 1e-14);
  // Over all outcomes of 60 items that win with .06 and lose with .02, the true difference is
  // within in about 95 %.
  double covered = 0;
  for (std::int64_t wins = 0; wins <= 60; ++wins) {
    for (std::int64_t losses = 0; wins + losses <= 60; ++losses) {
      const double probability =
          binomial_pmf(wins, 60, 0.06) * binomial_pmf(losses, 60 - wins, 0.02 / 0.94);
      const Interval at = bonett_price_interval(wins, losses, 60, 0.05);
      if (at.low <= 0.04 && 0.04 <= at.high) covered += probability;
    }
  }
  EXPECT_GT(covered, 0.94);
  EXPECT_LT(covered, 0.99);
}

}  // namespace
}  // namespace onset
