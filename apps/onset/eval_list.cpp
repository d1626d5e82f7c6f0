// `onset eval --list`: which tasks there are and what they need.

#include <algorithm>

#include "eval_report.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset::app {
namespace {

std::string_view kind_name(ItemKind kind) {
  switch (kind) {
    case ItemKind::choice:
      return "choice";
    case ItemKind::generation:
      return "generation";
    case ItemKind::text:
      return "text";
  }
  return "";
}

// Whatever a part is called: "mmlu/test/*_test.csv".
std::string data_pattern(const TaskFile& file) {
  std::string path = file.tasks.front().data.file;
  if (file.tasks.size() == 1 || path == file.tasks.back().data.file) return path;
  const auto part = file.tasks.front().names.at("part");
  const auto at = path.find(part);
  if (at != std::string::npos) path.replace(at, part.size(), "*");
  return path;
}

std::vector<std::string> metric_names(const TaskFile& file) {
  std::vector<std::string> names;
  for (const auto& task : file.tasks) {
    for (const auto& metric : task.metrics) {
      if (std::find(names.begin(), names.end(), metric.name) == names.end()) {
        names.push_back(metric.name);
      }
    }
  }
  return names;
}

// Groups and parts by name: what --tasks takes beside the file's own name.
std::vector<std::string> part_names(const TaskFile& file) {
  std::vector<std::string> names;
  if (file.groups.empty()) return names;
  for (const auto& group : file.groups) {
    if (group.name != file.name) names.push_back(group.name);
  }
  for (const auto& task : file.tasks) names.push_back(task.name);
  return names;
}

}  // namespace

std::string task_list_text(const TaskLibrary& library) {
  std::string text;
  for (const auto& file : library.files()) {
    const Task& task = file.tasks.front();
    text += pad_right(file.name, 16) + wrap(file.summary, 80, 16) + "\n";
    std::string line = str_cat(kind_name(task.kind));
    if (task.kind != ItemKind::text) line += str_cat(", ", task.fewshot.count, "-shot");
    line += str_cat("; ", join(metric_names(file), ", "));
    text += std::string(16, ' ') + wrap(line, 80, 16) + "\n";
    text += std::string(16, ' ') + wrap("data: " + data_pattern(file), 80, 16) + "\n";
    const auto parts = part_names(file);
    if (!parts.empty()) {
      constexpr std::size_t shown = 4;
      std::vector<std::string> first(
          parts.begin(),
          parts.begin() + static_cast<std::ptrdiff_t>(std::min(shown, parts.size())));
      std::string names = join(first, ", ");
      if (parts.size() > shown) names += str_cat(", .. ", parts.back());
      text += std::string(16, ' ') +
              wrap(str_cat("also ", file.tasks.size(), " parts: ", names), 80, 16) + "\n";
    }
  }
  return text;
}

OrderedJson task_list_json(const TaskLibrary& library) {
  OrderedJson list = OrderedJson::array();
  for (const auto& file : library.files()) {
    const Task& task = file.tasks.front();
    OrderedJson json{{"name", file.name},
                     {"summary", file.summary},
                     {"version", task.version},
                     {"kind", kind_name(task.kind)},
                     {"fewshot", task.fewshot.count},
                     {"metrics", metric_names(file)},
                     {"data", data_pattern(file)},
                     {"source", task.data.source},
                     {"file", valid_utf8(file.where)},
                     {"parts", part_names(file)}};
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace onset::app
