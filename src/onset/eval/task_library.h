// The tasks that the program carries within itself, and those of the user's files. Torch-free.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/task.h"

namespace onset {

// A file of tasks/ as it was when the program was built.
struct EmbeddedTask {
  std::string_view name;  // "tasks/piqa.toml"
  std::string_view text;
};
[[nodiscard]] const std::vector<EmbeddedTask>& embedded_tasks();

// Tasks that were asked for, in the order asked, and the groups that hold them.
struct TaskSelection {
  std::vector<Task> tasks;        // none twice
  std::vector<TaskGroup> groups;  // whole ones alone; members before the group that holds them
};

class TaskLibrary {
 public:
  // The tasks that came with the program and those of these files; a task of a file takes the place
  // of an embedded one of its name. Throws input errors of task files, and a usage error where two
  // files describe the same name.
  explicit TaskLibrary(const std::vector<std::filesystem::path>& files = {});

  [[nodiscard]] const std::vector<TaskFile>& files() const { return files_; }
  // By the names of tasks and groups. Throws a usage error with the nearest names for one that is
  // not known.
  [[nodiscard]] TaskSelection select(const std::vector<std::string>& names) const;

 private:
  std::vector<TaskFile> files_;
};

}  // namespace onset
