// The loop: going on from checkpoints, the best one, evaluation, gradients that are not finite.
#include "onset/train/trainer.h"

#include <c10/core/GradMode.h>

#include "onset/base/file.h"
#include "onset/train/checkpoint_folders.h"
#include "onset/train/dpo.h"
#include "onset/train/sft.h"
#include "train/run_support.h"

namespace onset {
namespace {

using testing::FullPolicy;
using testing::TemporaryFolder;

std::filesystem::path small_model() { return onset::testing::data("models/llama"); }

// Documents of ids by a rule.
std::vector<PackedRow> small_rows(std::int64_t count, std::int64_t first = 3) {
  std::vector<PackedRow> rows;
  for (std::int64_t r = 0; r < count; ++r) {
    SftExample example;
    for (std::int64_t t = 0; t < 6 + r % 5; ++t) {
      example.ids.push_back(first + (r * 31 + t * t * 7) % 200);
      example.trained.push_back(t > 1 ? 1 : 0);
    }
    rows.push_back({example});
  }
  return rows;
}

TrainerOptions small_options(std::int64_t steps) {
  TrainerOptions options;
  options.schedule = {.shape = ScheduleShape::cosine,
                      .learning_rate = 1e-3,
                      .warmup_steps = 1,
                      .total_steps = steps};
  options.optimizer.weight_decay = 0.01;
  return options;
}

std::vector<at::Tensor> weights_of(const Policy& policy) {
  std::vector<at::Tensor> weights;
  for (const Parameter& parameter : policy.trained()) {
    weights.push_back(parameter.value.detach().clone());
  }
  return weights;
}

struct SmallRun {
  explicit SmallRun(const Json& wemask = nullptr)
      : full(small_model(), wemask),
        objective(full.policy, small_rows(13), small_rows(4, 50),
                  {.window = {.batch = 2, .micro_batches = 2}, .shuffle_seed = 7}, alone) {}
  FullPolicy full;
  const Ranks alone;
  SftObjective objective;
};

const Json& small_mask() {
  static const Json mask{{"k", 8}, {"first_layer", 1}, {"mode", "recompute"}};
  return mask;
}

// Stopped after every number of updates, and gone on from what was saved: the same weights to the
// last bit, across the end of an epoch, with a mask whose dims follow the gains.
TEST(Trainer, ARunThatGoesOnEndsWhereTheWholeOneDoes) {
  constexpr std::int64_t steps = 7;
  SmallRun whole(small_mask());
  Trainer(whole.full.policy, whole.objective, whole.alone, small_options(steps), {}).run();
  const auto expected = weights_of(whole.full.policy);
  for (std::int64_t stop = 1; stop < steps; ++stop) {
    const TemporaryFolder folder;
    TrainerOptions options = small_options(steps);
    options.output = folder.path();
    {
      SmallRun first(small_mask());
      TrainerCalls calls;
      std::int64_t made = 0;
      calls.updated = [&](std::int64_t step, const Metrics&) { made = step; };
      calls.should_stop = [&] { return made == stop; };
      const RunResult result =
          Trainer(first.full.policy, first.objective, first.alone, options, calls).run();
      EXPECT_TRUE(result.stopped);
      EXPECT_EQ(result.step, stop);
    }
    SmallRun second(small_mask());
    Trainer trainer(second.full.policy, second.objective, second.alone, options, {});
    trainer.resume(checkpoint_path(folder.path(), stop));
    EXPECT_EQ(trainer.run().step, steps);
    const auto found = weights_of(second.full.policy);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(at::equal(found[i], expected[i]))
          << "stopped after " << stop << ": " << second.full.policy.trained()[i].name;
    }
    EXPECT_EQ(read_metrics(folder.path()).back().step, steps);
  }
}

TEST(Trainer, TheEndOfAnEpochIsAStepOfWhatIsLeft) {
  SmallRun run;
  EXPECT_EQ(run.objective.steps_per_epoch(), 4);  // 13 rows, 4 a step
  std::vector<double> epochs;
  TrainerCalls calls;
  calls.updated = [&](std::int64_t, const Metrics& metrics) {
    epochs.push_back(testing::value_of(metrics, "epoch"));
  };
  Trainer(run.full.policy, run.objective, run.alone, small_options(5), calls).run();
  EXPECT_NEAR(epochs[2], 12.0 / 13, 1e-12);
  EXPECT_NEAR(epochs[3], 1.0, 1e-12);
  EXPECT_NEAR(epochs[4], 1 + 4.0 / 13, 1e-12);
}

// Cut into micro-batches in any way, a step is the same.
TEST(Trainer, AccumulationChangesNothing) {
  std::vector<double> losses;
  std::vector<at::Tensor> first;
  for (const std::int64_t batch : {4, 2, 1}) {
    FullPolicy full(small_model());
    const Ranks alone;
    SftObjective objective(full.policy, small_rows(4), {},
                           {.window = {.batch = batch, .micro_batches = 4 / batch}}, alone);
    losses.push_back(testing::value_of(objective.accumulate(0), "loss"));
    std::vector<at::Tensor> gradients;
    for (const Parameter& parameter : full.policy.trained()) {
      gradients.push_back(parameter.value.grad().clone());
    }
    if (first.empty()) first = gradients;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_LT((gradients[i] - first[i]).norm().item<double>(),
                1e-5 * first[i].norm().item<double>())
          << batch;
    }
    EXPECT_NEAR(losses.back(), losses.front(), 1e-6);
  }
}

TEST(Trainer, TheBestCheckpointStays) {
  const TemporaryFolder folder;
  SmallRun run;
  TrainerOptions options = small_options(6);
  options.schedule.learning_rate = 0.05;  // too much: the held-out loss rises again
  options.output = folder.path();
  options.eval_steps = 1;
  options.retention.keep = 1;
  const RunResult result = Trainer(run.full.policy, run.objective, run.alone, options, {}).run();
  ASSERT_TRUE(result.best);
  double best = 1e30;
  std::int64_t best_step = 0;
  for (const MetricsLine& line : read_metrics(folder.path())) {
    for (const auto& [name, value] : line.metrics) {
      if (name != "eval_loss" || value >= best) continue;
      best = value;
      best_step = line.step;
    }
  }
  EXPECT_EQ(result.best->step, best_step);
  EXPECT_DOUBLE_EQ(result.best->value, best);
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder.path(), best_step)));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_path(folder.path(), 6)));
}

TEST(Trainer, GradientsThatAreNotFiniteEndTheRunOrAreLeftOut) {
  for (const bool skips : {false, true}) {
    SmallRun run;
    at::Tensor gain = run.full.policy.trained().back().value;
    const c10::NoGradGuard no_grad;
    gain.fill_(std::numeric_limits<float>::infinity());
    run.full.policy.changed();
    TrainerOptions options = small_options(2);
    options.skip_non_finite = skips;
    Trainer trainer(run.full.policy, run.objective, run.alone, options, {});
    const c10::AutoGradMode record(true);
    if (skips) {
      EXPECT_EQ(trainer.run().skipped, 2);
    } else {
      const std::string message = testing::error_of([&] { trainer.run(); });
      EXPECT_NE(message.find("not finite"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace onset
