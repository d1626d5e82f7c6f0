#include "onset/train/advantages.h"

#include <cmath>
#include <limits>

#include "onset/train/loss_metrics.h"
#include "training_fixtures.h"

namespace onset {
namespace {

using testing::error_of;

constexpr double abstained = std::numeric_limits<double>::quiet_NaN();

TEST(Advantages, AreDistancesFromTheGroupsMeanInItsDeviations) {
  // Means 2.5 and 10; deviations sqrt(5/3) and sqrt(64/3).
  const std::vector<double> rewards{1, 2, 3, 4, 6, 6, 14, 14};
  const Advantages found = group_advantages(rewards, 4, {});
  const double first = std::sqrt(5.0 / 3) + 1e-4;
  const double second = std::sqrt(64.0 / 3) + 1e-4;
  const std::vector<double> expected{-1.5 / first, -.5 / first, .5 / first, 1.5 / first,
                                     -4 / second,  -4 / second, 4 / second, 4 / second};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(found.values[i], expected[i], 1e-14);
  EXPECT_NEAR(found.reward_mean, 6.25, 1e-14);
  EXPECT_NEAR(found.reward_std, (std::sqrt(5.0 / 3) + std::sqrt(64.0 / 3)) / 2, 1e-14);
  EXPECT_EQ(found.frac_reward_zero_std, 0);

  const Advantages plain = group_advantages(rewards, 4, {.scale = RewardScale::none});
  EXPECT_EQ(plain.values, (std::vector<double>{-1.5, -.5, .5, 1.5, -4, -4, 4, 4}));
}

TEST(Advantages, CanBeScaledByTheDeviationOfAllRewards) {
  const std::vector<double> rewards{0, 1, 3, 4};  // mean 2, squares 4 + 1 + 1 + 4
  const Advantages found =
      group_advantages(rewards, 2, {.scale = RewardScale::batch, .epsilon = 0});
  const double deviation = std::sqrt(10.0 / 3);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(found.values[i], (i % 2 == 0 ? -.5 : .5) / deviation, 1e-14);
  }
  EXPECT_NEAR(found.reward_std, deviation, 1e-14);
}

TEST(Advantages, ARewardThatAbstainedIsLeftOutOfItsGroup) {
  const Advantages found = group_advantages(
      std::vector<double>{1, abstained, 3, 7, abstained, abstained, 5, abstained, abstained}, 3,
      {.epsilon = 0});
  const double root = std::sqrt(2.0);
  // {1, 3}: deviation sqrt(2). {7} alone has nothing to be compared with.
  EXPECT_NEAR(found.values[0], -1 / root, 1e-14);
  EXPECT_NEAR(found.values[2], 1 / root, 1e-14);
  for (const std::size_t i : {1, 3, 4, 5, 6, 7, 8}) EXPECT_EQ(found.values[i], 0) << i;
  EXPECT_EQ(found.scored, (std::vector<std::uint8_t>{1, 0, 1, 1, 0, 0, 1, 0, 0}));
  EXPECT_NEAR(found.reward_mean, 4, 1e-14);
  EXPECT_NEAR(found.frac_reward_zero_std, 2.0 / 3, 1e-14);
}

// 0.1 + 0.1 + 0.1 over 3 is not 0.1: the difference over epsilon 0 would be anything.
TEST(Advantages, EqualRewardsGiveExactlyZero) {
  for (const double epsilon : {0.0, 1e-4}) {
    const Advantages found =
        group_advantages(std::vector<double>{.1, .1, .1}, 3, {.epsilon = epsilon});
    EXPECT_EQ(found.values, (std::vector<double>{0, 0, 0}));
    EXPECT_EQ(found.frac_reward_zero_std, 1);
    EXPECT_EQ(found.reward_std, 0);
  }
}

TEST(Advantages, NoRewardAtAllIsNoError) {
  const Advantages found = group_advantages(std::vector<double>{abstained, abstained}, 2, {});
  EXPECT_EQ(found.values, (std::vector<double>{0, 0}));
  EXPECT_EQ(found.reward_mean, 0);
  EXPECT_EQ(found.frac_abstained, 1);
  // A reward that nobody gave is no 0 in the log.
  EXPECT_EQ(metrics_of(found), (Metrics{{"frac_reward_abstained", 1.0}}));
}

TEST(Advantages, CompletionsWithoutARewardAreCounted) {
  const Advantages found = group_advantages(std::vector<double>{1, abstained, 0, 1}, 2, {});
  EXPECT_EQ(found.frac_abstained, 0.25);
  EXPECT_EQ(metrics_of(found).back(), (Metric{"frac_reward_abstained", 0.25}));
  EXPECT_EQ(group_advantages(std::vector<double>{1, 0}, 2, {}).frac_abstained, 0);
}

TEST(Advantages, WrongSizesAndInfiniteRewardsAreRefused) {
  EXPECT_NE(error_of([] {
              return group_advantages(std::vector<double>{1, 2, 3}, 2, {});
            }).find("3 rewards are no whole number of groups of 2"),
            std::string::npos);
  EXPECT_NE(
      error_of([] { return group_advantages(std::vector<double>{1}, 1, {}); }).find("2 or more"),
      std::string::npos);
  EXPECT_NE(error_of([] {
              return group_advantages(
                  std::vector<double>{1, std::numeric_limits<double>::infinity()}, 2, {});
            }).find("completion 1 is infinite"),
            std::string::npos);
}

class AdvantageFixtures : public testing::TrainingFixtures {};

TEST_F(AdvantageFixtures, EqualTheReferences) {
  const Json data = read("data_grpo.json");
  int compared = 0;
  for (const std::string model : {"llama", "qwen3"}) {
    const Json file = read("grpo_" + model + ".json");
    for (const Json& run : file.at("runs")) {
      const bool scaled = run.at("case").at("std_norm").get<bool>();
      for (std::size_t generation = 0; generation < data.size(); ++generation) {
        std::vector<double> expected;
        for (const Json& row : run.at("advantages").at(generation)) {
          for (const Json& value : row) expected.push_back(value.get<double>());
        }
        std::vector<double> rewards;
        for (const Json& group : data.at(generation)) {
          for (const Json& value : group.at("rewards")) rewards.push_back(value.get<double>());
        }
        const Advantages found =
            group_advantages(rewards, 4,
                             {.scale = scaled ? RewardScale::group : RewardScale::none,
                              .epsilon = file.at("hyper").at("adv_eps").get<double>()});
        ASSERT_EQ(found.values.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          // Stored as float32.
          EXPECT_NEAR(found.values[i], expected[i], 1e-7 * (1 + std::abs(expected[i])));
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 2 * 26 * 2 * 8);
}

}  // namespace
}  // namespace onset
