// What `onset eval` shows and writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "onset/eval/results.h"
#include "onset/eval/task_library.h"
#include "text.h"

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

}  // namespace onset::app
