// The rows of a task's data, read in the formats that public data sets come in. Torch-free.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/eval/task.h"

namespace onset {

struct TaskRow {
  OrderedJson fields;  // an object
  std::string where;   // "data/piqa/valid.jsonl:7", for messages
};

// By the ending of the file's name: .jsonl, an object a line; .json, a list of objects; .csv and
// .tsv, the first line naming the fields; anything else is text, one row with the field "text".
// Throws an input error: for a file that is not there, naming what public file goes where; for a
// row that cannot be read, naming file and line; for a file without rows.
[[nodiscard]] std::vector<TaskRow> read_rows(const TaskData& data,
                                             const std::filesystem::path& folder);

// Whether the row meets the condition.
[[nodiscard]] bool meets(const RowCondition& condition, const TaskRow& row);

}  // namespace onset
