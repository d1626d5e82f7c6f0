// Results as files: the layout of lm-evaluation-harness 0.4 (results_TIME.json, and a line for each
// document and filter in samples_TASK_TIME.jsonl), with the mask beside it. Torch-free.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/eval/metrics.h"

namespace onset {

// The items of a task with what became of them; all in the same order.
struct AnsweredTask {
  TaskResult result;
  std::vector<EvalItem> items;
  std::vector<ItemAnswer> answers;
  std::vector<std::vector<FilteredScores>> scores;  // empty for a skipped item
};

// Scores the answers of one task and adds them up.
[[nodiscard]] AnsweredTask grade(Task task, std::vector<EvalItem> items,
                                 std::vector<ItemAnswer> answers);

// What a result says beside the scores; see docs/eval.md.
struct ResultFacts {
  OrderedJson config;  // "config": model, compute, limit, seeds ..
  OrderedJson wemask;  // the mask, or null
  OrderedJson extra;   // further members of the document, after the scores
};

// The content of results_TIME.json.
[[nodiscard]] OrderedJson results_json(std::span<const AnsweredTask> tasks,
                                       std::span<const GroupResult> groups,
                                       const ResultFacts& facts);

// The lines of samples_TASK_TIME.jsonl: by filter, then by document, as lm-eval writes them.
[[nodiscard]] std::string samples_jsonl(const AnsweredTask& task);

// "2026-11-30T01-20-33.123456", UTC: what the names of the files of one run share.
[[nodiscard]] std::string time_in_names(std::chrono::system_clock::time_point time);

// Python's json.dumps(value, indent=2, ensure_ascii=False), hashed: lm-eval's doc_hash.
[[nodiscard]] std::string document_hash(const OrderedJson& document);

}  // namespace onset
