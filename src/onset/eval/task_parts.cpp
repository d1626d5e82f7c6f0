#include "onset/eval/task_parts.h"

#include <algorithm>
#include <set>

#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr std::string_view place = "{part}";

void put_part(std::string& path, const std::string& part) {
  for (auto at = path.find(place); at != std::string::npos; at = path.find(place, at)) {
    path.replace(at, place.size(), part);
    at += part.size();
  }
}

// Names become parts of the names of tasks, files of data and files of samples.
void check_name(const TomlTable& table, const std::string& key, const std::string& name) {
  const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  if (is_plain) return;
  throw table.error(key, str_cat(quote(name), " should hold letters, digits, _ and - alone"));
}

bool has_part(const std::vector<Part>& parts, const std::string& name) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return part.name == name; });
}

std::vector<Part> read_listed(TomlTable& file) {
  std::vector<Part> parts;
  for (auto& table : file.tables("parts")) {
    Part part{.name = table.text("name"), .alias = {}, .condition = {}};
    check_name(table, "name", part.name);
    if (has_part(parts, part.name)) {
      throw table.error("name", str_cat(quote(part.name), " is there twice"));
    }
    part.alias = table.find_text("alias").value_or(part.name);
    if (auto condition = table.find_table("where")) part.condition = read_condition(*condition);
    table.refuse_others();
    parts.push_back(std::move(part));
  }
  return parts;
}

// A part that no [[parts]] describes has its own file of data; without one it would be the same
// documents again under another name.
void add_part(const std::string& name, const Task& task, const TomlTable& table,
              std::vector<Part>& parts) {
  check_name(table, "parts", name);
  if (has_part(parts, name)) return;
  if (task.data.file.find(place) == std::string::npos) {
    std::vector<std::string> known;
    known.reserve(parts.size());
    for (const auto& part : parts) known.push_back(part.name);
    throw table.error("parts",
                      str_cat("name the part ", quote(name), ", which no [[parts]] describes, and ",
                              "data.file has no {part} that would be its file"),
                      did_you_mean(nearest(name, known)));
  }
  parts.push_back({.name = name, .alias = name, .condition = {}});
}

}  // namespace

RowCondition read_condition(TomlTable table) {
  RowCondition condition;
  condition.field = {table.text("field"), table.place("field")};
  const auto equals = table.find_text("equals");
  const auto contains = table.find_text("contains");
  if (equals.has_value() == contains.has_value()) {
    throw table.error("", "a condition has either equals or contains");
  }
  condition.value = equals ? *equals : *contains;
  condition.contains = contains.has_value();
  table.refuse_others();
  return condition;
}

std::vector<Part> read_parts(TomlTable& file, std::vector<TaskGroup>& groups, const Task& task) {
  std::vector<Part> parts = read_listed(file);
  std::set<std::string> names;
  for (auto& table : file.tables("groups")) {
    const std::string name = table.text("name");
    check_name(table, "name", name);
    if (!names.insert(name).second) {
      throw table.error("name", str_cat(quote(name), " is there twice"));
    }
    TaskGroup group{.name = str_cat(task.name, "_", name),
                    .alias = table.find_text("alias").value_or(name),
                    .members = {}};
    for (const auto& member : table.texts("parts")) {
      add_part(member, task, table, parts);
      const std::string whole = str_cat(task.name, "_", member);
      if (std::find(group.members.begin(), group.members.end(), whole) != group.members.end()) {
        throw table.error("parts", str_cat("name ", quote(member), " twice"));
      }
      group.members.push_back(whole);
    }
    if (group.members.empty()) throw table.error("parts", "names no part");
    table.refuse_others();
    groups.push_back(std::move(group));
  }
  for (const auto& name : names) {
    if (!has_part(parts, name)) continue;
    throw file.error("groups", str_cat("have one of the name ", quote(name), ", as a part has"));
  }
  return parts;
}

Task task_of_part(Task task, const Part& part, const std::vector<MetricOfParts>& metrics) {
  task.name += "_" + part.name;
  task.alias = part.alias;
  task.names["part"] = part.name;
  if (!part.condition.field.empty()) task.condition = part.condition;
  put_part(task.data.file, part.name);
  put_part(task.data.labels, part.name);
  if (task.fewshot.data) {
    put_part(task.fewshot.data->file, part.name);
    put_part(task.fewshot.data->labels, part.name);
  }
  for (const auto& [metric, parts] : metrics) {
    const bool is_its =
        parts.empty() || std::find(parts.begin(), parts.end(), part.name) != parts.end();
    if (is_its) task.metrics.push_back(metric);
  }
  return task;
}

}  // namespace onset
