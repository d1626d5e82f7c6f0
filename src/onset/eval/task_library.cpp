#include "onset/eval/task_library.h"

#include <algorithm>
#include <set>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/task_file.h"

// Files as objects, see report/assets.cpp. The build file writes a line ONSET_TASK(piqa, "PATH")
// for each file of tasks/ into embedded_tasks.inc.
#define ONSET_TASK(name, path)                       \
  asm(".pushsection .rodata\n"                       \
      "onset_task_" #name                            \
      "_begin:\n"                                    \
      ".incbin \"" path                              \
      "\"\n"                                         \
      "onset_task_" #name                            \
      "_end:\n"                                      \
      ".byte 0\n"                                    \
      ".global onset_task_" #name                    \
      "_begin\n"                                     \
      ".global onset_task_" #name                    \
      "_end\n"                                       \
      ".popsection\n");                              \
  extern "C" const char onset_task_##name##_begin[]; \
  extern "C" const char onset_task_##name##_end[];
#include "embedded_tasks.inc"
#undef ONSET_TASK

namespace onset {
namespace {

EmbeddedTask embedded(std::string_view name, const char* begin, const char* end) {
  return {name, {begin, static_cast<std::size_t>(end - begin)}};
}

const TaskGroup* find_group(const TaskFile& file, const std::string& name) {
  for (const auto& group : file.groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

const Task* find_task(const TaskFile& file, const std::string& name) {
  for (const auto& task : file.tasks) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

class Selector {
 public:
  // Adds what the file has of that name; false when it has nothing.
  bool add(const TaskFile& file, const std::string& name) {
    if (const Task* task = find_task(file, name)) {
      if (tasks_.insert(name).second) result.tasks.push_back(*task);
      return true;
    }
    const TaskGroup* group = find_group(file, name);
    if (group == nullptr) return false;
    for (const auto& member : group->members) static_cast<void>(add(file, member));
    if (groups_.insert(name).second) result.groups.push_back(*group);
    return true;
  }

  TaskSelection result;

 private:
  std::set<std::string> tasks_;
  std::set<std::string> groups_;
};

}  // namespace

const std::vector<EmbeddedTask>& embedded_tasks() {
#define ONSET_TASK(name, path) \
  embedded("tasks/" #name ".toml", onset_task_##name##_begin, onset_task_##name##_end),
  static const std::vector<EmbeddedTask> tasks{
#include "embedded_tasks.inc"
  };
#undef ONSET_TASK
  return tasks;
}

TaskLibrary::TaskLibrary(const std::vector<std::filesystem::path>& files) {
  for (const auto& path : files) {
    TaskFile file = read_task_file(path);
    for (const auto& other : files_) {
      if (other.name != file.name) continue;
      if (other.where == file.where) {
        throw usage_error(str_cat("the task file ", file.where, " is given twice"));
      }
      throw usage_error(str_cat("two task files describe ", quote(file.name), ": ", other.where,
                                " and ", file.where));
    }
    files_.push_back(std::move(file));
  }
  const std::size_t given = files_.size();
  for (const auto& [name, text] : embedded_tasks()) {
    TaskFile file = parse_task_file(text, std::string(name));
    const bool is_replaced =
        std::any_of(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(given),
                    [&](const TaskFile& other) { return other.name == file.name; });
    if (!is_replaced) files_.push_back(std::move(file));
  }
}

TaskSelection TaskLibrary::select(const std::vector<std::string>& names) const {
  Selector selector;
  for (const auto& name : names) {
    const bool is_known = std::any_of(files_.begin(), files_.end(), [&](const TaskFile& file) {
      return selector.add(file, name);
    });
    if (is_known) continue;
    std::vector<std::string> known;
    for (const auto& file : files_) {
      for (const auto& group : file.groups) known.push_back(group.name);
      for (const auto& task : file.tasks) known.push_back(task.name);
    }
    const auto near = nearest(name, known);
    throw usage_error(str_cat("no task is called ", quote(name)),
                      near.empty() ? "see: onset eval --list" : did_you_mean(near));
  }
  return std::move(selector.result);
}

}  // namespace onset
