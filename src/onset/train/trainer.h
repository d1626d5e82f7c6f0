// The loop of a run: gradients from an objective, summed over ranks, clipped; AdamW; metrics;
// evaluation; checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "onset/train/metrics.h"
#include "onset/train/objective.h"
#include "onset/train/optimizer.h"
#include "onset/train/policy.h"
#include "onset/train/schedule.h"
#include "onset/train/train_state.h"

namespace onset {

struct TrainerOptions {
  std::filesystem::path output;  // empty: nothing is written
  Schedule schedule;             // total_steps: the updates of the run
  AdamWOptions optimizer;
  double max_grad_norm = 1.0;  // 0: no clipping
  // A step whose gradients are not finite is left out, and counted; else it ends the run.
  bool skip_non_finite = false;
  std::int64_t logging_steps = 10;
  std::int64_t eval_steps = 0;  // 0: never
  std::int64_t save_steps = 0;  // 0: at the end alone
  CheckpointRetention retention;
  // The metric of evaluate() that the best checkpoint is kept by; empty: none is.
  std::string best_metric = "eval_loss";
  bool greater_is_better = false;
  std::int64_t watch_steps = 0;  // 0: never
  bool event_files = true;       // TensorBoard's, beside metrics.jsonl
  // What must be the same when the run goes on (TrainState::identity).
  OrderedJson identity = OrderedJson::object();
};

struct TrainerCalls {
  // Puts the model's files into a checkpoint's folder.
  std::function<void(const std::filesystem::path& folder)> write_model = {};
  // After every update, on every rank: that update's numbers.
  std::function<void(std::int64_t step, const Metrics& metrics)> updated = {};
  // Whenever a line is written; on the first rank.
  std::function<void(std::int64_t step, const Metrics& metrics)> logged = {};
  std::function<void(const std::filesystem::path& checkpoint)> saved = {};
  // Every watch_steps updates and before the first, on the first rank.
  std::function<void(std::int64_t step)> watch = {};
  // True: the run saves and ends after this update. Asked on the first rank.
  std::function<bool()> should_stop = {};
};

struct RunResult {
  std::int64_t step = 0;     // updates made, those before a resumption too
  std::int64_t skipped = 0;  // left out for gradients that were not finite
  bool stopped = false;      // by should_stop
  std::optional<BestCheckpoint> best;
};

class Trainer {
 public:
  // All must outlive it.
  Trainer(Policy& policy, Objective& objective, const Ranks& ranks, TrainerOptions options,
          TrainerCalls calls);

  // Goes on from a checkpoint of this run, whose files check_checkpoint() looks at. Input errors as
  // train_state.h says; then nothing changed.
  void resume(const std::filesystem::path& checkpoint);
  // The weights of a checkpoint of this run alone, to be written elsewhere.
  void take_weights(const std::filesystem::path& checkpoint);
  // Throws an input error where ranks no longer hold the same weights (checked at every checkpoint
  // and at the end), and what the objective throws.
  RunResult run();

 private:
  [[nodiscard]] Metrics update();
  void log(const Metrics& metrics);
  void log_means();
  void evaluate();
  void save();
  [[nodiscard]] bool asked_to_stop();

  Policy& policy_;
  Objective& objective_;
  const Ranks& ranks_;
  TrainerOptions options_;
  TrainerCalls calls_;
  AdamW optimizer_;
  std::optional<MetricsWriter> writer_;
  MetricMeans means_;
  Metrics latest_;
  std::int64_t step_ = 0;
  std::int64_t skipped_ = 0;
  std::optional<std::int64_t> resumed_;
  std::optional<std::int64_t> saved_step_;
  std::optional<BestCheckpoint> best_;
  bool new_best_ = false;
};

}  // namespace onset
