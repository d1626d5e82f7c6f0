// What answers are worth: the metrics of a task, document by document and for all. Torch-free.
//
// Means and standard errors are those of lm-evaluation-harness 0.4: of values x_i the mean m and
// sqrt(sum (x_i - m)^2 / (n - 1)) / sqrt(n); of a group the mean over all its documents and the
// pooled standard error sqrt(sum_j (n_j - 1) n_j se_j^2 / (N - J) / N), J tasks with N documents.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onset/eval/engine.h"
#include "onset/eval/item.h"
#include "onset/eval/task.h"

namespace onset {

// A value of a document. Perplexities are ratios: log-likelihood over tokens, words or bytes, and
// are summed over documents before they are divided.
struct DocumentValue {
  std::string metric;
  double value = 0;
  std::optional<double> units = std::nullopt;  // of a ratio
};

// What one filter made of an answer, and what that is worth.
struct FilteredScores {
  std::string filter = "none";
  std::string answer = {};  // of generation: the text that was graded
  bool found = true;        // false: the filter found no answer
  std::vector<DocumentValue> values = {};
};

// One for each filter of the task, in its order; one, "none", for tasks without filters.
// `answer` must not be a skipped one.
[[nodiscard]] std::vector<FilteredScores> score(const Task& task, const EvalItem& item,
                                                const ItemAnswer& answer);

// Which choice is the largest, by Choice::text as `measure` says; the first on ties.
[[nodiscard]] std::size_t best_choice(const EvalItem& item, const ItemAnswer& answer,
                                      Measure measure);

// Code points of valid UTF-8, as Python's len counts them.
[[nodiscard]] std::int64_t characters(std::string_view text);
// Words as lm-eval counts them for perplexities: the parts between white space, empty ones at both
// ends included.
[[nodiscard]] std::int64_t words(std::string_view text);

struct MetricResult {
  std::string metric;
  std::string filter = "none";
  double value = 0;
  std::optional<double> stderror = std::nullopt;  // none for ratios and for one document
  bool higher_is_better = true;
  std::int64_t count = 0;  // documents
};

// Of one task.
struct TaskResult {
  Task task;
  std::int64_t fewshot = 0;
  std::int64_t documents = 0;  // in the data
  std::int64_t scored = 0;
  std::int64_t skipped = 0;    // too long, not asked: not among the scored
  std::int64_t cut = 0;        // too long, asked without their beginning
  std::int64_t truncated = 0;  // generation that ended at its length; among the scored
  std::vector<MetricResult> metrics;
};

struct GroupResult {
  TaskGroup group;
  std::int64_t scored = 0;
  std::vector<MetricResult> metrics;
};

[[nodiscard]] double mean(std::span<const double> values);
// Nothing for fewer than two values.
[[nodiscard]] std::optional<double> standard_error(std::span<const double> values);

// `scores`: those of each item that was not skipped.
[[nodiscard]] std::vector<MetricResult> aggregate(
    const Task& task, std::span<const std::vector<FilteredScores>> scores);

// Of each group, from the tasks in it. A metric that only some of its tasks have is averaged over
// those; ratios are not averaged.
[[nodiscard]] std::vector<GroupResult> aggregate_groups(const std::vector<TaskGroup>& groups,
                                                        std::span<const TaskResult> tasks);

}  // namespace onset
