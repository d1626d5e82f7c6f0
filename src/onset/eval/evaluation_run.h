// A run of an evaluation as its files tell it: results_*.json and samples_*.jsonl in the layout of
// lm-evaluation-harness 0.4. Torch-free.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/eval/samples_file.h"

namespace onset {

// Which files make a run. Files of one run share what follows the last part of their names:
// results_TIME.json, samples_TASK_TIME.jsonl.
struct RunFiles {
  std::string given;              // the path as it was given
  std::filesystem::path results;  // empty where there is none
  struct TaskSamples {
    std::string task;
    std::filesystem::path path;
  };
  std::vector<TaskSamples> samples;  // by task's name
  std::vector<std::string> notes;    // what was found and left out
};

// `path`: a folder, or one of its folders where the files lie one level deeper (lm-eval makes one a
// model), of whose runs the latest is taken; a results_*.json, for the run of that time; or one
// samples_*.jsonl. Throws an input error that says what was looked for.
[[nodiscard]] RunFiles find_run(const std::filesystem::path& path);

struct EvaluationRun {
  RunFiles files;
  Json results;                    // of results_*.json; null where there is none
  std::vector<SamplesFile> tasks;  // those that were wanted

  [[nodiscard]] const SamplesFile* find_task(const std::string& name) const;
};

// Reads the results, not yet the samples.
[[nodiscard]] EvaluationRun open_run(const std::filesystem::path& path);
// Reads the samples of the tasks that `wanted` names.
void read_tasks(EvaluationRun& run, const std::function<bool(const std::string& task)>& wanted);

// Groups of a run and the tasks that count in each, groups within groups taken apart; from
// `group_subtasks` of the results. Groups without tasks (single tasks) are left out.
[[nodiscard]] std::map<std::string, std::vector<std::string>> groups_of(const Json& results);

// Is more of the metric better? From `higher_is_better` of the results.
[[nodiscard]] std::optional<bool> higher_is_better(const Json& results, const std::string& task,
                                                   const std::string& metric);

// A setting with two values. Null where a run does not have it.
struct SettingDifference {
  std::string name;  // "config.model_args", "n-shot.piqa"
  Json a;
  Json b;
};

// What the results say of how the runs were made, where it differs: model, mask (`wemask`, as one
// value), configuration, examples, versions of the tasks; not when, where, on what machine, or how
// fast. Settings of single tasks (n-shot, versions) are compared where both runs have the task.
[[nodiscard]] std::vector<SettingDifference> setting_differences(const Json& a, const Json& b);

}  // namespace onset
