// What `onset eval` shows and writes.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval_options.h"
#include "onset/eval/engine.h"
#include "onset/eval/results.h"
#include "onset/eval/task_library.h"
#include "process.h"
#include "text.h"

namespace onset {
class Ranks;
}

namespace onset::app {

// The tasks of the library: a row each with its documents' file.
[[nodiscard]] std::string task_list_text(const TaskLibrary& library);
[[nodiscard]] OrderedJson task_list_json(const TaskLibrary& library);

// The scores, at most 80 columns wide: groups first, their members indented below them.
[[nodiscard]] std::string scores_text(std::span<const AnsweredTask> tasks,
                                      std::span<const GroupResult> groups, const TextStyle& style);

// One sentence a line for what the scores do not show: items that were skipped or cut, answers that
// ended at their length.
[[nodiscard]] std::string remarks_text(std::span<const AnsweredTask> tasks);

// The last part of the model's path.
[[nodiscard]] std::string results_model_name(const std::string& path);

// `config` of results: what eval and ablate have in common of it.
[[nodiscard]] OrderedJson results_config(const TaskOptions& tasks, const ComputeOptions& compute,
                                         const std::string& path);

// What the results of `onset eval` say beside the scores.
[[nodiscard]] ResultFacts eval_facts(const EvalVerbOptions& options, const std::string& path,
                                     const Model& model, const std::optional<MaskSpec>& mask,
                                     const std::optional<ChatFormat>& chat,
                                     const EvalCounts& counts, const Ranks& ranks,
                                     const Invocation& invocation);

// results_TIME.json, whose path is returned, and where asked samples_TASK_TIME.jsonl of each task.
std::filesystem::path write_results(const std::filesystem::path& folder, const std::string& time,
                                    std::span<const AnsweredTask> tasks, const OrderedJson& results,
                                    bool samples);

}  // namespace onset::app
