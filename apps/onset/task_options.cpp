#include "task_options.h"

#include <filesystem>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset::app {

TaskLibrary TaskOptions::library() const {
  return TaskLibrary(std::vector<std::filesystem::path>(task_files.begin(), task_files.end()));
}

TaskSelection TaskOptions::select(const std::string& verb, const TaskLibrary& library,
                                  std::vector<std::string> names) const {
  if (names.empty()) {
    for (std::size_t i = 0; i < task_files.size(); ++i) names.push_back(library.files()[i].name);
  }
  if (names.empty()) {
    throw usage_error(str_cat("onset ", verb, " needs tasks: --tasks A,B"),
                      "see: onset eval --list");
  }
  return library.select(names);
}

ItemOptions TaskOptions::item_options(const std::optional<ChatFormat>& format) const {
  ItemOptions items;
  items.data = data;
  if (fewshot >= 0) items.fewshot = fewshot;
  if (limit > 0) items.limit = limit;
  if (sample > 0) items.sample = sample;
  items.seed = static_cast<std::uint64_t>(fewshot_seed);
  items.chat = format;
  items.system = system;
  return items;
}

}  // namespace onset::app
