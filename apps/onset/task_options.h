// Which tasks a verb asks a model, and how their documents become items. Base of the options of
// `eval` and `ablate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/eval/task_items.h"
#include "onset/eval/task_library.h"

namespace onset::app {

struct TaskOptions {
  std::vector<std::string> tasks;
  std::vector<std::string> task_files;
  std::string data = "data";
  std::int64_t limit = 0;     // 0: all documents
  std::int64_t sample = 0;    // 0: all documents
  std::int64_t fewshot = -1;  // -1: as many examples as the task says
  std::int64_t fewshot_seed = 1234;
  bool chat = false;
  std::string system;

  [[nodiscard]] TaskLibrary library() const;
  // The tasks of these names, those of task files where there is none; a usage error without both.
  [[nodiscard]] TaskSelection select(const std::string& verb, const TaskLibrary& library,
                                     std::vector<std::string> names) const;
  [[nodiscard]] ItemOptions item_options(const std::optional<ChatFormat>& format) const;
};

}  // namespace onset::app
