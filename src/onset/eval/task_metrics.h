// The metrics of a task's file. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "onset/base/toml.h"
#include "onset/eval/task.h"

namespace onset {

struct MetricOfParts {
  TaskMetric metric;
  std::vector<std::string> parts;  // empty: all
};

// One table of [[metrics]], for a task of that kind.
[[nodiscard]] MetricOfParts read_metric(TomlTable table, ItemKind kind);

// Throws where the task has none, where one names a filter that the task does not have, or where
// two have the same name under the same filter.
void check_metrics(const Task& task, const TomlTable& file);

}  // namespace onset
