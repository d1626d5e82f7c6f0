// The page of a run of `train`: how loss, rates and rewards went, and how massive activations
// emerged where the run watched them. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "onset/report/page.h"
#include "onset/train/metrics.h"
#include "onset/train/settings.h"

namespace onset {

// A line of watch.jsonl (docs/train-report.md).
struct WatchedStep {
  std::int64_t step = 0;
  std::optional<std::int64_t> me_layer = {};
  std::vector<double> max_abs = {};  // [L]: the largest |x| after each layer; NaN: not finite
  std::vector<double> ratio = {};    // [L]: over the median
};

// watch.jsonl of a run's folder, or such a file itself; nothing where there is none. Of a step that
// is there twice (a run that went on after a checkpoint) the later line counts; a torn last line is
// left out. Throws an input error with the line's number for anything else that is not one.
[[nodiscard]] std::vector<WatchedStep> read_watch(const std::filesystem::path& path);

struct TrainingPageInput {
  std::string name;                // of the run's folder
  std::vector<MetricsLine> lines;  // by step
  std::vector<WatchedStep> watched = {};
  std::vector<Fact> facts = {};           // about the run, for the last section
  std::string settings = {};              // settings.toml, shown as it is
  std::optional<TrainSettings> run = {};  // the same, for the heading and the first words
};

// Throws an input error where there are no numbers.
[[nodiscard]] Page training_page(const TrainingPageInput& input);

// The page of a run's folder, as HTML: metrics.jsonl, watch.jsonl and settings.toml of it.
[[nodiscard]] std::string training_report(const std::filesystem::path& run);

}  // namespace onset
