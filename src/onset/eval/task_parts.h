// The parts of a task's file: tasks that differ in their data only. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "onset/base/toml.h"
#include "onset/eval/task.h"
#include "onset/eval/task_metrics.h"

namespace onset {

struct Part {
  std::string name;
  std::string alias;
  RowCondition condition;
};

// The table `where` of a task or a part.
[[nodiscard]] RowCondition read_condition(TomlTable table);

// The parts as they are listed, or as the groups name them; the groups go into `groups`. `task`:
// what they have in common. Throws where a name is there twice, is no plain word, or is that of a
// part which nothing describes.
[[nodiscard]] std::vector<Part> read_parts(TomlTable& file, std::vector<TaskGroup>& groups,
                                           const Task& task);

// The task of the file as it is for one part, with the metrics that count for it.
[[nodiscard]] Task task_of_part(Task task, const Part& part,
                                const std::vector<MetricOfParts>& metrics);

}  // namespace onset
