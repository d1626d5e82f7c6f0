#include "onset/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/train/loss_metrics.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;
using testing::TemporaryFolder;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(MetricMeans, AreMeansByWeightInTheOrderOfTheirNames) {
  MetricMeans means;
  EXPECT_TRUE(means.empty());
  means.add("loss", 2, 1);
  means.add({{"kl", 5}, {"reward", nan}});
  means.add("loss", 5, 3);
  means.add("reward", 1);
  means.add("abstained", nan);
  EXPECT_EQ(means.take(), (Metrics{{"loss", 17.0 / 4}, {"kl", 5}, {"reward", 1}}));
  EXPECT_TRUE(means.empty());
  means.add("kl", 1);
  EXPECT_EQ(means.take(), (Metrics{{"kl", 1}}));
}

TEST(Metrics, OfCompletions) {
  const std::vector<std::int64_t> lengths{4, 10, 10, 6};
  const Metrics found = completion_metrics(lengths, {true, false, false, true});
  EXPECT_EQ(found, (Metrics{{"completions/mean_length", 7.5},
                            {"completions/min_length", 4},
                            {"completions/max_length", 10},
                            {"completions/clipped_ratio", .5},
                            {"completions/mean_terminated_length", 5}}));
  EXPECT_TRUE(completion_metrics({}, {}).empty());
}

TEST(Metrics, OfTheLossesTotals) {
  const DpoTotals dpo{.pairs = 4,
                      .loss = 2,
                      .rewards_chosen = 1,
                      .rewards_rejected = -1,
                      .margins = 2,
                      .accurate = 3,
                      .logps_chosen = -40,
                      .logps_rejected = -80};
  EXPECT_EQ(metrics_of(dpo), (Metrics{{"rewards/chosen", .25},
                                      {"rewards/rejected", -.25},
                                      {"rewards/margins", .5},
                                      {"rewards/accuracies", .75},
                                      {"logps/chosen", -10},
                                      {"logps/rejected", -20}}));
  const GrpoTotals grpo{.tokens = 8,
                        .loss = 1,
                        .kl = 2,
                        .clipped_low = 1,
                        .clipped_high = 3,
                        .ratio_min = .5,
                        .ratio_max = 1.25};
  EXPECT_EQ(metrics_of(grpo, true), (Metrics{{"kl", .25},
                                             {"clip_ratio/low_mean", .125},
                                             {"clip_ratio/high_mean", .375},
                                             {"clip_ratio/region_mean", .5},
                                             {"ratio_error", .5}}));
  EXPECT_EQ(metrics_of(grpo, false).front().first, "clip_ratio/low_mean");
  EXPECT_TRUE(metrics_of(DpoTotals{}).empty());
  EXPECT_TRUE(metrics_of(GrpoTotals{}, true).empty());
}

TEST(MetricsWriter, ALineIsThereAsSoonAsItIsWritten) {
  const TemporaryFolder folder;
  MetricsWriter writer(folder.path() / "run", std::nullopt);
  writer.write(10, {{"loss", 2.5}, {"grad_norm", nan}, {"rewards/chosen", -0.125}});
  const auto path = folder.path() / "run" / "metrics.jsonl";
  EXPECT_EQ(read_file(path),
            "{\"step\":10,\"loss\":2.5,\"grad_norm\":null,\"rewards/chosen\":-0.125}\n");
  writer.write(20, {{"eval_loss", 0.1}});
  const auto lines = read_metrics(folder.path() / "run");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].step, 10);
  EXPECT_EQ(lines[0].metrics, (Metrics{{"loss", 2.5}, {"rewards/chosen", -0.125}}));
  EXPECT_EQ(lines[1].metrics, (Metrics{{"eval_loss", 0.1}}));
}

TEST(MetricsWriter, ARunThatGoesOnKeepsWhatItHadUpToItsCheckpoint) {
  const TemporaryFolder folder;
  {
    MetricsWriter writer(folder.path(), std::nullopt);
    for (const std::int64_t step : {1, 2, 3, 4}) {
      writer.write(step, {{"loss", 10.0 - static_cast<double>(step)}});
    }
  }
  // It was killed in the middle of a line.
  const auto path = folder.path() / "metrics.jsonl";
  write_file_atomically(path, read_file(path) + "{\"step\":5,\"lo");
  EXPECT_EQ(read_metrics(path).size(), 4U);
  {
    MetricsWriter writer(folder.path(), 2);
    writer.write(3, {{"loss", 70}});
  }
  EXPECT_EQ(read_file(path),
            "{\"step\":1,\"loss\":9.0}\n{\"step\":2,\"loss\":8.0}\n{\"step\":3,\"loss\":70.0}\n");
  const MetricsWriter anew(folder.path(), std::nullopt);
  EXPECT_EQ(read_file(path), "");
}

TEST(Metrics, AFileThatHoldsNoneIsAnErrorWithItsLine) {
  const TemporaryFolder folder;
  const auto path = folder.write("metrics.jsonl", "{\"step\":1}\n{\"loss\":1}\n");
  EXPECT_NE(error_of([&] { return read_metrics(path); }).find("line 2: is no line of metrics"),
            std::string::npos);
  EXPECT_NE(error_of([&] { MetricsWriter(folder.path(), 1); }).find("line 2"), std::string::npos);
  EXPECT_NE(error_of([&] { return read_metrics(folder.path() / "nothing"); }).find("nothing"),
            std::string::npos);
}

}  // namespace
}  // namespace onset
