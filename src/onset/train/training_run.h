// A run of `train`: model, data, objective and loop put together from settings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/base/ranks.h"
#include "onset/massive/scan.h"
#include "onset/train/metrics.h"
#include "onset/train/settings.h"
#include "onset/train/train_state.h"

namespace onset {

class Tokenizer;

// What a run tells, on the first rank alone.
struct RunEvents {
  // Sentences about what is done: data, memory, what is trained.
  std::function<void(const std::string& paragraph)> say = {};
  // Before the first update, when all is set up.
  std::function<void()> begins = {};
  // After every update; `total` are those of the run.
  std::function<void(std::int64_t step, std::int64_t total, const Metrics& metrics)> updated = {};
  // Whenever a line of metrics is written.
  std::function<void(std::int64_t step, const Metrics& metrics)> logged = {};
  std::function<void(const std::filesystem::path& checkpoint)> saved = {};
  std::function<bool()> should_stop = {};
  // What is scanned with `watch`; the ids of a text by the run's tokenizer.
  std::function<std::vector<ScanPrompt>(const Tokenizer& tokenizer)> watched_prompts = {};
};

struct TrainingResult {
  std::int64_t step = 0;
  std::int64_t steps = 0;  // that the run was to make
  std::int64_t skipped = 0;
  bool stopped = false;
  std::optional<BestCheckpoint> best;
  std::filesystem::path model;  // OUTPUT/final; empty where the run was stopped
};

// Of checked settings. Writes into output_dir:
//   settings.toml   the settings as they came out
//   metrics.jsonl, and TensorBoard's event files
//   watch.jsonl     with `watch`
//   checkpoint-N    as settings say
//   final           the trained model, or adapter
//   initial         (pretrain) the model as it began
// Throws input errors for an output_dir that holds another run, and what the parts throw. Not in
// InferenceMode.
TrainingResult run_training(const TrainSettings& settings, const Ranks& ranks,
                            const RunEvents& events, const Log& log);

}  // namespace onset
