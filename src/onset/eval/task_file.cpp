#include "onset/eval/task_file.h"

#include <algorithm>
#include <array>
#include <limits>

#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/base/toml.h"
#include "onset/eval/task_metrics.h"
#include "onset/eval/task_names.h"
#include "onset/eval/task_parts.h"

namespace onset {
namespace {

constexpr std::string_view task_format = "onset.task.1";
constexpr std::int64_t no_limit = std::numeric_limits<std::int32_t>::max();

// The text of a template with the names put in, where nothing else is.
PromptTemplate template_at(TomlTable& table, const std::string& key, const std::string& fallback) {
  const auto text = table.find_text(key);
  return {text.value_or(fallback), table.place(key)};
}

PromptTemplate needed_template(TomlTable& table, const std::string& key) {
  return {table.text(key), table.place(key)};
}

// "{choices.text}", a list of the row, or a list of templates.
std::vector<PromptTemplate> list_of_templates(TomlTable& table, const std::string& key) {
  std::vector<PromptTemplate> list;
  if (table.value(key).is_string()) {
    list.push_back(needed_template(table, key));
    if (!list.front().is_one_place()) {
      throw table.error(key, "should be one place, \"{choices.text}\", or a list of texts");
    }
    return list;
  }
  for (const auto& text : table.texts(key)) list.emplace_back(text, table.place(key));
  return list;
}

TaskData read_data(TomlTable table) {
  TaskData data;
  data.file = table.text("file");
  data.source = table.find_text("source").value_or("");
  data.labels = table.find_text("labels").value_or("");
  data.label_field = table.find_text("label_field").value_or("label");
  data.integers = table.texts("integers");
  if (auto lists = table.find_table("lists")) {
    for (const auto& name : lists->keys()) data.lists.emplace_back(name, lists->texts(name));
  }
  for (const auto& path : {data.file, data.labels}) {
    if (path.starts_with("/") || path.find("..") != std::string::npos) {
      throw table.error("file", str_cat(quote(path), " should lie within the data folder"));
    }
  }
  table.refuse_others();
  return data;
}

FewshotSource read_fewshot(TomlTable table) {
  FewshotSource source;
  if (auto data = table.find_table("data")) source.data = read_data(*data);
  for (const auto& row : table.value("rows")) {
    if (!row.is_object()) throw table.error("rows", "should be a list of tables");
    source.rows.emplace_back(row);
  }
  if (source.data && !source.rows.empty())
    throw table.error("rows", "stands beside data: give one");
  constexpr std::array samplers{std::pair{std::string_view("random"), FewshotSampler::random},
                                std::pair{std::string_view("first_n"), FewshotSampler::first_n}};
  if (const auto given = table.find_text("sampler")) {
    source.sampler = one_of(table, "sampler", *given, samplers);
  } else if (!source.rows.empty()) {
    source.sampler = FewshotSampler::first_n;
  }
  source.count = table.find_integer("count", 0, 1000).value_or(0);
  table.refuse_others();
  return source;
}

TaskPrompt read_prompt(TomlTable table, ItemKind kind) {
  TaskPrompt prompt;
  prompt.description = template_at(table, "description", "");
  prompt.question = needed_template(table, "question");
  prompt.chat_question = template_at(table, "chat_question", "");
  if (kind == ItemKind::generation) prompt.target = needed_template(table, "target");
  prompt.target_delimiter = table.find_text("target_delimiter").value_or(prompt.target_delimiter);
  prompt.fewshot_delimiter =
      table.find_text("fewshot_delimiter").value_or(prompt.fewshot_delimiter);
  table.refuse_others();
  return prompt;
}

TaskChoices read_choices(TomlTable table) {
  TaskChoices choices;
  choices.texts = list_of_templates(table, "texts");
  if (choices.texts.empty()) throw table.error("", "texts is missing: what the choices say");
  choices.labels = list_of_templates(table, "labels");
  choices.gold = needed_template(table, "gold");
  table.refuse_others();
  return choices;
}

TaskGeneration read_generation(TomlTable table) {
  TaskGeneration generation;
  generation.stop = table.texts("stop");
  for (const auto& stop : generation.stop) {
    if (stop.empty()) throw table.error("stop", "holds an empty text, which every answer has");
  }
  generation.max_new_tokens =
      table.find_integer("max_new_tokens", 1, no_limit).value_or(generation.max_new_tokens);
  table.refuse_others();
  return generation;
}

TaskWindows read_windows(TomlTable table) {
  TaskWindows windows;
  windows.text = template_at(table, "text", "{text}");
  windows.window = table.find_integer("window", 2, no_limit).value_or(windows.window);
  windows.stride = table.find_integer("stride", 0, no_limit).value_or(windows.stride);
  table.refuse_others();
  return windows;
}

FilterStep read_step(TomlTable table) {
  FilterStep step;
  const std::string name = table.text("function");
  step.function = filter_function(name, table.place("function"));
  if (step.function == FilterFunction::regex) {
    step.pattern.emplace(table.text("pattern"), table.place("pattern"));
    step.group_select =
        static_cast<int>(table.find_integer("group_select", -1000, 1000).value_or(0));
  }
  table.refuse_others();
  return step;
}

AnswerFilter read_filter(TomlTable table) {
  AnswerFilter filter;
  filter.name = table.text("name");
  filter.fallback = table.find_text("fallback").value_or(filter.fallback);
  for (auto& step : table.tables("steps")) filter.steps.push_back(read_step(step));
  table.refuse_others();
  return filter;
}

Task read_common(TomlTable& file) {
  Task task;
  task.name = file.text("name");
  const bool is_plain =
      !task.name.empty() && std::all_of(task.name.begin(), task.name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
  if (!is_plain) {
    throw file.error("name", "should hold lower-case letters, digits, _ and - alone");
  }
  task.alias = task.name;
  task.version = file.text("version");
  task.summary = file.text("summary");
  constexpr std::array kinds{std::pair{std::string_view("choice"), ItemKind::choice},
                             std::pair{std::string_view("generation"), ItemKind::generation},
                             std::pair{std::string_view("text"), ItemKind::text}};
  task.kind = one_of(file, "kind", file.text("kind"), kinds);
  task.data = read_data(file.table("data"));
  if (auto condition = file.find_table("where")) task.condition = read_condition(*condition);
  if (task.kind == ItemKind::text) {
    auto windows = file.find_table("text");
    if (windows) {
      task.windows = read_windows(*windows);
    } else {
      task.windows.text = {"{text}", file.place("text")};
    }
    return task;
  }
  task.prompt = read_prompt(file.table("prompt"), task.kind);
  if (auto fewshot = file.find_table("fewshot")) task.fewshot = read_fewshot(*fewshot);
  if (task.kind == ItemKind::choice) {
    task.choices = read_choices(file.table("choice"));
    return task;
  }
  if (auto generation = file.find_table("generation"))
    task.generation = read_generation(*generation);
  for (auto& table : file.tables("filters")) {
    AnswerFilter filter = read_filter(table);
    for (const auto& other : task.filters) {
      if (other.name != filter.name) continue;
      throw table.error("name", str_cat(quote(filter.name), " is there twice"));
    }
    task.filters.push_back(std::move(filter));
  }
  return task;
}

}  // namespace

TaskFile parse_task_file(std::string_view text, const std::string& where) {
  TomlTable file = TomlTable::parse(text, where);
  const std::string format = file.text("format");
  if (format != task_format) {
    throw file.error("format",
                     str_cat("is ", quote(format), ", this program reads ", quote(task_format)));
  }
  TaskFile result;
  Task common = read_common(file);
  common.file = where;
  result.name = common.name;
  result.summary = common.summary;
  result.where = where;
  std::vector<MetricOfParts> metrics;
  for (auto& table : file.tables("metrics")) metrics.push_back(read_metric(table, common.kind));
  const auto parts = read_parts(file, result.groups, common);
  file.refuse_others();
  if (parts.empty()) {
    for (const auto& [metric, names] : metrics) common.metrics.push_back(metric);
    result.tasks.push_back(std::move(common));
  } else {
    TaskGroup all{.name = common.name, .alias = common.name, .members = {}};
    for (const auto& group : result.groups) all.members.push_back(group.name);
    for (const auto& part : parts) {
      result.tasks.push_back(task_of_part(common, part, metrics));
      // Those that are in no group stand beside the groups.
      const std::string& name = result.tasks.back().name;
      const bool is_grouped =
          std::any_of(result.groups.begin(), result.groups.end(), [&](const TaskGroup& group) {
            return std::find(group.members.begin(), group.members.end(), name) !=
                   group.members.end();
          });
      if (!is_grouped) all.members.push_back(name);
    }
    result.groups.push_back(std::move(all));
  }
  for (const auto& [metric, names] : metrics) {
    for (const auto& name : names) {
      const bool is_known = std::any_of(parts.begin(), parts.end(),
                                        [&](const Part& part) { return part.name == name; });
      if (!is_known)
        throw file.error("metrics", str_cat("name the part ", quote(name), ", which is not there"));
    }
  }
  for (const auto& task : result.tasks) check_metrics(task, file);
  return result;
}

TaskFile read_task_file(const std::filesystem::path& path) {
  return parse_task_file(read_file(path, std::size_t{1} << 24), path.string());
}

}  // namespace onset
