// Two runs over the same items, task by task and metric by metric. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/eval/evaluation_run.h"
#include "onset/eval/paired.h"

namespace onset {

struct ComparisonOptions {
  PairedOptions paired = {};
  std::vector<std::string> tasks = {};    // tasks and groups by name; empty: all
  std::vector<std::string> metrics = {};  // empty: all
  // Pair by doc_id alone, though the documents' hashes differ.
  bool by_number = false;
};

// An item whose score is another one in the other run. The samples are those of the runs.
struct ChangedItem {
  std::int64_t doc = 0;
  double a = 0;
  double b = 0;
  const Sample* in_a = nullptr;
  const Sample* in_b = nullptr;
};

struct ComparisonRow {
  std::string task;  // or a group
  std::string filter;
  std::string metric;
  std::vector<std::string> group_tasks = {};  // of a group: those that are in it; empty for a task
  std::string member_of = {};  // the group among the rows that its items count in; may be empty
  // Of a task, or of all tasks of a group alike.
  std::optional<bool> higher_is_better = std::nullopt;
  // Scores were pairs [log-likelihood, units]: the means are negative log-likelihoods in nats a
  // unit, of which exp is the perplexity; less is better.
  bool is_nll = false;
  bool by_windows = false;  // texts were paired window by window: these are the row's items
  PairedResult result = {};
  // p after Holm's correction. The rows that stand for themselves are one family of tests; the
  // members of groups, which take apart what their group's row asks already, are another.
  double holm_p = 1;
  std::int64_t family = 1;                // how many tests are in it
  std::int64_t without_score = 0;         // items left out since a run has no finite score for them
  std::vector<ChangedItem> changed = {};  // of a task, by doc
};

// How the items of a task were paired.
struct TaskPairing {
  std::string task;
  std::int64_t items = 0;            // in both runs
  std::int64_t only_a = 0;           // left out
  std::int64_t only_b = 0;           // left out
  std::int64_t other_prompts = 0;    // the same document under another prompt
  std::int64_t other_documents = 0;  // with `by_number`: other hashes
  bool hashed = true;                // could the documents be compared by hash?
};

struct Comparison {
  std::vector<TaskPairing> pairings;
  std::vector<ComparisonRow> rows;  // a group before its members; otherwise by name
  std::vector<std::string> only_a;  // tasks
  std::vector<std::string> only_b;
  std::vector<SettingDifference> settings;  // empty where a run has no results
  std::vector<std::string> notes;           // what was left out and why
};

// Reads the samples that `options` asks for into the runs, which the result points into, and
// compares them. Throws an input error where no task is in both runs, where the document of a
// doc_id is another one in the other run (unless `by_number`), and as read_samples(); a usage error
// for a task, group or metric that neither run has.
[[nodiscard]] Comparison compare_runs(EvaluationRun& a, EvaluationRun& b,
                                      const ComparisonOptions& options);

}  // namespace onset
