#include "onset/train/schedule.h"

#include <cmath>

#include "training_fixtures.h"

namespace onset {
namespace {

using testing::error_of;

TEST(Schedule, RisesFromZeroAndThenFollowsItsShape) {
  Schedule schedule{.learning_rate = 8, .warmup_steps = 4, .total_steps = 12};
  for (const auto shape : {ScheduleShape::constant, ScheduleShape::linear, ScheduleShape::cosine}) {
    schedule.shape = shape;
    for (const std::int64_t step : {0, 1, 2, 3, 4}) {
      EXPECT_DOUBLE_EQ(learning_rate_at(schedule, step), 2.0 * static_cast<double>(step));
    }
  }
  schedule.shape = ScheduleShape::constant;
  EXPECT_EQ(learning_rate_at(schedule, 100), 8);
  schedule.shape = ScheduleShape::linear;
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 6), 6);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 11), 1);
  EXPECT_EQ(learning_rate_at(schedule, 12), 0);
  EXPECT_EQ(learning_rate_at(schedule, 20), 0);
  schedule.shape = ScheduleShape::cosine;
  EXPECT_NEAR(learning_rate_at(schedule, 6), 4 + 4 * std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(learning_rate_at(schedule, 8), 4, 1e-12);
  EXPECT_NEAR(learning_rate_at(schedule, 12), 0, 1e-12);
  EXPECT_NEAR(learning_rate_at(schedule, 20), 0, 1e-12);
}

TEST(Schedule, WithoutWarmUpTheFirstRateIsTheHighest) {
  for (const auto shape : {ScheduleShape::constant, ScheduleShape::linear, ScheduleShape::cosine}) {
    EXPECT_EQ(learning_rate_at({.shape = shape, .learning_rate = 3, .total_steps = 5}, 0), 3);
  }
}

TEST(Schedule, AWarmUpMayBeLongerThanTheRun) {
  const Schedule schedule{.learning_rate = 10, .warmup_steps = 10, .total_steps = 5};
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 4), 4);
}

TEST(Schedule, SharesOfWarmUpAreRoundedUp) {
  EXPECT_EQ(warmup_steps_of(0.03, 100), 3);
  EXPECT_EQ(warmup_steps_of(0.03, 101), 4);
  EXPECT_EQ(warmup_steps_of(0, 101), 0);
}

TEST(Schedule, ValuesOutOfRangeAreRefused) {
  EXPECT_NE(error_of([] {
              return learning_rate_at({.learning_rate = -1}, 0);
            }).find("learning rate is -1"),
            std::string::npos);
  EXPECT_NE(error_of([] { return learning_rate_at({.total_steps = 0}, 0); }).find("of 0"),
            std::string::npos);
  EXPECT_NE(error_of([] { return warmup_steps_of(1.5, 10); }).find("1.5"), std::string::npos);
}

class ScheduleFixtures : public testing::TrainingFixtures {};

TEST_F(ScheduleFixtures, EqualTheReferencesToTheLastDigit) {
  for (const std::string file : {"sft_full_llama.json", "sft_lora_qwen3.json"}) {
    const Json curve = read(file);
    const Json& hyper = curve.at("hyper");
    const Schedule schedule{.shape = ScheduleShape::cosine,
                            .learning_rate = hyper.at("lr").get<double>(),
                            .warmup_steps = hyper.at("warmup").get<std::int64_t>(),
                            .total_steps = hyper.at("steps").get<std::int64_t>()};
    ASSERT_EQ(curve.at("steps").size(), 12U);
    for (const Json& step : curve.at("steps")) {
      const auto expected = step.at("lr").get<double>();  // nine significant digits
      EXPECT_NEAR(learning_rate_at(schedule, step.at("step").get<std::int64_t>()), expected,
                  5e-9 * expected);
    }
  }
}

}  // namespace
}  // namespace onset
