// Sampling against what is counted by hand, against Random123's own vectors, and against a slow
// version of every step.
#include "onset/generate/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "onset/generate/philox.h"
#include "support/support.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

std::vector<float> random_logits(std::mt19937_64& random, std::size_t count, bool with_ties) {
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<float> logits(count);
  for (float& value : logits) {
    value = normal(random);
    if (with_ties) value = std::round(value);
  }
  return logits;
}

// Probabilities by the definition, in float64.
std::vector<double> softmax(const std::vector<double>& logits, double temperature) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> result;
  double sum = 0;
  for (const double logit : logits)
    sum += result.emplace_back(std::exp((logit - largest) / temperature));
  for (double& value : result) value /= sum;
  return result;
}

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// Which tokens are left and with what probability: everything sorted, step by step.
std::vector<double> slow_distribution(const std::vector<float>& logits,
                                      const SamplingOptions& options) {
  std::vector<double> left = softmax(doubles(logits), options.temperature);
  std::vector<std::size_t> order(left.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  const auto keep_first = [&](std::size_t count) {
    for (std::size_t i = count; i < order.size(); ++i) left[order[i]] = 0;
    const double sum = std::accumulate(left.begin(), left.end(), 0.0);
    for (double& value : left) value /= sum;
  };
  if (options.top_k > 0) keep_first(static_cast<std::size_t>(options.top_k));
  if (options.top_p < 1) {
    double sum = 0;
    std::size_t count = 0;
    while (count < order.size() && sum < options.top_p) sum += left[order[count++]];
    keep_first(count);
  }
  const double least = options.min_p * left[order[0]];
  double sum = 0;
  for (double& value : left) sum += value = value < least ? 0 : value;
  for (double& value : left) value /= sum;
  return left;
}

Draw draw(const std::vector<float>& logits, const SamplingOptions& options,
          const TokenHistory& history = {}, std::uint64_t position = 0) {
  return sample_token(logits, options, history, {.seed = options.seed, .position = position});
}

TEST(Philox, EqualsTheVectorsOfRandom123) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox_4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox_4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformDraw, TakesTheFirst53BitsOfThePhiloxWords) {
  // 0x6627e8d5e169c58d >> 11, times 2^-53.
  EXPECT_DOUBLE_EQ(uniform_draw({}), static_cast<double>(0x6627e8d5e169c58dULL >> 11U) * 0x1p-53);
}

TEST(UniformDraw, DependsOnEveryPartOfTheKey) {
  std::set<double> drawn{uniform_draw({})};
  for (const std::uint64_t bit : {std::uint64_t{1}, std::uint64_t{1} << 40U}) {
    drawn.insert(uniform_draw({.seed = bit}));
    drawn.insert(uniform_draw({.request = bit}));
  }
  drawn.insert(uniform_draw({.sample = 1}));
  drawn.insert(uniform_draw({.position = 1}));
  EXPECT_EQ(drawn.size(), 7U);
  for (const double value : drawn) {
    EXPECT_GE(value, 0.0);
    EXPECT_LT(value, 1.0);
  }
}

TEST(SampleToken, GreedyTakesTheLowestOfTheLargest) {
  const std::vector<float> logits{0.5F, 2.0F, -1.0F, 2.0F};
  const Draw found = draw(logits, {.temperature = 0});
  EXPECT_EQ(found.id, 1);
  const double sum = std::exp(0.5) + 2 * std::exp(2.0) + std::exp(-1.0);
  EXPECT_NEAR(found.logprob, 2.0 - std::log(sum), 1e-7);
  EXPECT_EQ(found.sampled_logprob, 0.0);
}

// 10 outcomes, 20,000 draws: chi-square with 9 degrees of freedom is above 33.7 once in 10,000.
TEST(SampleToken, DrawsFollowTheSoftmax) {
  std::mt19937_64 random(3);
  const auto logits = random_logits(random, 10, false);
  for (const double temperature : {0.7, 1.0, 2.5}) {
    const auto expected = softmax(doubles(logits), temperature);
    std::vector<double> counts(10);
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) {
      const Draw found =
          draw(logits, {.temperature = temperature, .seed = 5}, {}, static_cast<std::uint64_t>(i));
      ++counts[static_cast<std::size_t>(found.id)];
    }
    double chi_square = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      chi_square += std::pow(counts[i] - draws * expected[i], 2) / (draws * expected[i]);
    }
    EXPECT_LT(chi_square, 33.7) << "temperature " << temperature;
  }
}

TEST(SampleToken, LimitsLeaveWhatASlowVersionLeaves) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    const auto logits = random_logits(random, 5 + below(300), round % 2 == 0);
    SamplingOptions options{.temperature = 0.5 + 0.25 * static_cast<double>(below(6)), .seed = 1};
    if (below(2) == 0) options.top_k = static_cast<std::int64_t>(1 + below(logits.size()));
    if (below(2) == 0) options.top_p = 0.05 + 0.1 * static_cast<double>(below(10));
    if (below(2) == 0) options.min_p = 0.01 * static_cast<double>(below(60));
    const auto expected = slow_distribution(logits, options);
    const auto by_model = softmax(doubles(logits), 1.0);
    for (std::uint64_t i = 0; i < 40; ++i) {
      const Draw found = draw(logits, options, {}, i);
      const auto id = static_cast<std::size_t>(found.id);
      ASSERT_GT(expected[id], 0) << "round " << round << ", id " << id;
      EXPECT_NEAR(found.sampled_logprob, std::log(expected[id]), 1e-5);
      EXPECT_NEAR(found.logprob, std::log(by_model[id]), 1e-5);
      // By the inverse of the cumulative distribution in the order of ids.
      double sum = 0;
      std::size_t wanted = 0;
      const double target = uniform_draw({.seed = 1, .position = i});
      while (wanted < expected.size() && (sum += expected[wanted]) <= target) ++wanted;
      if (std::abs(sum - target) > 1e-5) {
        EXPECT_EQ(id, wanted) << "round " << round;
      }
    }
  }
}

TEST(SampleToken, TopKTakesTheLowerIdsOfTies) {
  const std::vector<float> logits{1.0F, 3.0F, 1.0F, 1.0F, 3.0F};
  std::set<std::int64_t> seen;
  for (std::uint64_t i = 0; i < 500; ++i) seen.insert(draw(logits, {.top_k = 3}, {}, i).id);
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 4}));
}

TEST(SampleToken, TopPTakesTheTokenThatReachesIt) {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  const std::vector<float> logits{std::log(4.0F), std::log(2.0F), 0.0F, 0.0F};
  const auto seen = [&](double top_p) {
    std::set<std::int64_t> ids;
    for (std::uint64_t i = 0; i < 500; ++i) ids.insert(draw(logits, {.top_p = top_p}, {}, i).id);
    return ids;
  };
  EXPECT_EQ(seen(0.1), (std::set<std::int64_t>{0}));
  EXPECT_EQ(seen(0.6), (std::set<std::int64_t>{0, 1}));
  EXPECT_EQ(seen(0.8), (std::set<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(seen(0.9), (std::set<std::int64_t>{0, 1, 2, 3}));
}

TEST(SampleToken, PenaltiesAndBiasByHand) {
  const std::vector<float> logits{2.0F, -1.0F, 0.5F, 1.0F};
  const TokenHistory history{.prompt = {{0, 3}}, .generated = {{1, 2}, {3, 1}}};
  // Of one token left by top-k the sampled log-probability tells nothing, so the most likely token
  // of the changed logits is looked at with a bias that lifts each in turn.
  const auto changed = [&](SamplingOptions options, std::int64_t id, std::int64_t other) {
    // ln of the ratio of two tokens' probabilities is the difference of their logits.
    options.seed = 9;
    std::map<std::int64_t, double> found;
    for (std::uint64_t i = 0; i < 4000 && found.size() < 4; ++i) {
      const Draw drawn = draw(logits, options, history, i);
      found[drawn.id] = drawn.sampled_logprob;
    }
    EXPECT_EQ(found.size(), 4U);
    return found[id] - found[other];
  };
  EXPECT_NEAR(changed({}, 0, 2), 1.5, 1e-6);
  // Seen: 0 (in the prompt), 1 and 3. 2 / 1.25 = 1.6; -1 * 1.25; 1 / 1.25 = 0.8.
  EXPECT_NEAR(changed({.repetition_penalty = 1.25}, 0, 2), 1.6 - 0.5, 1e-6);
  EXPECT_NEAR(changed({.repetition_penalty = 1.25}, 1, 2), -1.25 - 0.5, 1e-6);
  EXPECT_NEAR(changed({.repetition_penalty = 1.25}, 3, 2), 0.8 - 0.5, 1e-6);
  // Generated alone: 1 twice, 3 once.
  EXPECT_NEAR(changed({.frequency_penalty = 0.5}, 1, 2), -1.0 - 1.0 - 0.5, 1e-6);
  EXPECT_NEAR(changed({.frequency_penalty = 0.5}, 0, 2), 1.5, 1e-6);
  EXPECT_NEAR(changed({.presence_penalty = 0.25}, 1, 2), -1.25 - 0.5, 1e-6);
  EXPECT_NEAR(changed({.presence_penalty = 0.25}, 3, 2), 0.75 - 0.5, 1e-6);
  // The bias comes before the penalty: (2 - 3) * 1.25.
  EXPECT_NEAR(changed({.repetition_penalty = 1.25, .logit_bias = {{0, -3.0}}}, 0, 2), -1.25 - 0.5,
              1e-6);
}

TEST(SampleToken, LogprobIsTheModelsOwnWhateverTheSteps) {
  const std::vector<float> logits{2.0F, -1.0F, 0.5F, 1.0F};
  const TokenHistory history{.prompt = {}, .generated = {{0, 5}}};
  const Draw found = draw(
      logits, {.temperature = 0, .frequency_penalty = 1.0, .logit_bias = {{2, 10.0}}}, history);
  EXPECT_EQ(found.id, 2);
  EXPECT_NEAR(found.logprob, std::log(softmax(doubles(logits), 1.0)[2]), 1e-6);
}

TEST(SampleToken, MinusInfinityNeverComes) {
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits{never, 1.0F, never, 1.0F, never};
  std::set<std::int64_t> seen;
  for (std::uint64_t i = 0; i < 200; ++i) {
    for (const std::int64_t k : {0, 2, 4}) {
      seen.insert(draw(logits, {.temperature = 50, .top_k = k}, {}, i).id);
    }
  }
  EXPECT_EQ(seen, (std::set<std::int64_t>{1, 3}));
  EXPECT_EQ(draw(logits, {.temperature = 0, .logit_bias = {{1, -100.0}}}).id, 3);
}

TEST(SampleToken, ExtremeTemperaturesAreFinite) {
  const std::vector<float> logits{1.0F, 1.5F, -3.0F};
  for (const double temperature : {1e-300, 1e-6}) {
    const Draw found = draw(logits, {.temperature = temperature});
    EXPECT_EQ(found.id, 1);
    EXPECT_EQ(found.sampled_logprob, 0.0);
  }
  EXPECT_NEAR(draw(logits, {.temperature = 1e300}).sampled_logprob, std::log(1.0 / 3), 1e-6);
}

TEST(SampleToken, WhatIsNoDistributionIsAnError) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto message = [](std::vector<float> logits, SamplingOptions options = {}) {
    return error_of([&] { static_cast<void>(draw(logits, options)); });
  };
  EXPECT_NE(message({nan, nan}).find("NaN"), std::string::npos);
  EXPECT_NE(message({1.0F, nan, 2.0F}, {.temperature = 0}).find("NaN"), std::string::npos);
  EXPECT_NE(message({1.0F, infinity}).find("+infinity"), std::string::npos);
  EXPECT_NE(message({-infinity, -infinity}).find("no token has a finite logit"), std::string::npos);
}

TEST(CheckSampling, NamesTheSettingItsRangeAndTheValue) {
  const auto message = [](const SamplingOptions& options) {
    return error_of([&] { check_sampling(options); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message({.temperature = -1}), "temperature is -1, and has to be 0 or more");
  EXPECT_EQ(message({.temperature = nan}), "temperature is nan, and has to be 0 or more");
  EXPECT_EQ(message({.top_k = -2}), "top_k is -2, and has to be 0 (no limit) or more");
  EXPECT_EQ(message({.top_p = 0}), "top_p is 0, and has to be above 0 and at most 1");
  EXPECT_EQ(message({.min_p = 1.5}), "min_p is 1.5, and has to be from 0 to 1");
  EXPECT_NE(message({.repetition_penalty = 0}).find("above 0"), std::string::npos);
  EXPECT_NE(message({.frequency_penalty = nan}).find("frequency_penalty"), std::string::npos);
  EXPECT_NE(message({.presence_penalty = nan}).find("presence_penalty"), std::string::npos);
  EXPECT_NE(message({.logit_bias = {{-1, 1.0}}}).find("-1 is no token id"), std::string::npos);
  EXPECT_NO_THROW(check_sampling({}));
}

TEST(MostLikely, EqualsASortedSoftmax) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 50; ++round) {
    const auto logits = random_logits(random, 3 + random() % 500, round % 2 == 0);
    const auto probabilities = softmax(doubles(logits), 1.0);
    Ids order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    for (const std::int64_t count : {0, 1, 3, 20, 1000}) {
      const auto found = most_likely(logits, count);
      ASSERT_EQ(found.size(), std::min(static_cast<std::size_t>(count), logits.size()));
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].id, order[i]);
        const double expected = std::log(probabilities[static_cast<std::size_t>(order[i])]);
        EXPECT_NEAR(found[i].logprob, expected, 1e-5);
        EXPECT_NEAR(logprob_of(logits, order[i]), expected, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace onset::testing
