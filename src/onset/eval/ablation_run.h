// Runs an ablation: the baseline, then every mask of the grid on the same items. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onset/base/log.h"
#include "onset/eval/ablation.h"
#include "onset/eval/engine.h"
#include "onset/eval/task.h"

namespace onset {

// A task with its items. `column`: the task or the group whose column its scores go into.
struct AblationTask {
  Task task;
  std::vector<EvalItem> items;
  std::string column;
  std::int64_t documents = 0;  // of the data, before --limit and the like
  std::int64_t fewshot = 0;
};

struct AblationInput {
  std::vector<AblationTask> tasks;
  // Without a mask; windows of texts are those of their tasks. Where it has ranks they share the
  // items, and run the masks of the first of them.
  EvalOptions engine;
  // Samples of text whose sinks are measured; none: they are not.
  std::vector<std::vector<std::int64_t>> sink_samples;
  // Prompts as the items begin, whose masked tokens' energy is measured; the first token of each is
  // enough for masks of the first token.
  std::vector<std::vector<std::int64_t>> beginnings;
  // What a scan found, for masks of massive tokens.
  std::vector<std::int64_t> massive_dims;
  // 0: none. Else every setting is asked the first `budget` items of each task (texts whole), and
  // those that are significantly worse in the first metric of a task, at alpha / (2 x settings),
  // are asked no more.
  std::int64_t budget = 0;
  PairedOptions paired;
};

struct AblationWatcher {
  // Before each condition: "no mask", "weight, rate 0.25", its number from 0, and how many.
  std::function<void(const std::string& name, std::int64_t number, std::int64_t count)> condition;
  // Every mask that is run, with a name of its own.
  std::function<void(const std::string& name, const MaskSpec& mask)> mask;
  // The answers of each run when it is done, by task: of all items, or of the first alone where the
  // setting was given up. No mask: nullptr.
  std::function<void(const std::string& name, const MaskSpec* mask,
                     const std::vector<std::vector<ItemAnswer>>& answers)>
      answers;
};

// Random masks of a setting are drawn with paired.seed plus their number. Throws as make_mask() and
// answer_items() do, and a usage error for a grid or tasks that are empty.
[[nodiscard]] AblationResult run_ablation(const Model& model, const Tokenizer& tokenizer,
                                          const AblationGrid& grid, const AblationInput& input,
                                          const AblationWatcher& watcher = {}, const Log& log = {});

// The scores of one condition: a column for each task (or group), filter and metric as the tasks
// declare them; of texts a column of their windows. `answers`: by task, of the first items at least
// none; the others have no score.
[[nodiscard]] std::vector<ScoreColumn> score_columns(
    const std::vector<AblationTask>& tasks, const std::vector<std::vector<ItemAnswer>>& answers);

}  // namespace onset
