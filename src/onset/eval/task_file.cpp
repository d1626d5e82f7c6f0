#include "onset/eval/task_file.h"

#include <algorithm>
#include <array>
#include <limits>

#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/base/toml.h"

namespace onset {
namespace {

constexpr std::string_view task_format = "onset.task.1";
constexpr std::int64_t no_limit = std::numeric_limits<std::int32_t>::max();

struct MeasureRow {
  Measure measure;
  std::string_view name;
  ItemKind kind;
  bool higher_is_better;
};

constexpr std::array measures{
    MeasureRow{Measure::acc, "acc", ItemKind::choice, true},
    MeasureRow{Measure::acc_norm, "acc_norm", ItemKind::choice, true},
    MeasureRow{Measure::acc_bytes, "acc_bytes", ItemKind::choice, true},
    MeasureRow{Measure::exact_match, "exact_match", ItemKind::generation, true},
    MeasureRow{Measure::numeric_match, "numeric_match", ItemKind::generation, true},
    MeasureRow{Measure::math_equal, "math_equal", ItemKind::generation, true},
    MeasureRow{Measure::full_refusal, "full_refusal", ItemKind::generation, true},
    MeasureRow{Measure::partial_refusal, "partial_refusal", ItemKind::generation, true},
    MeasureRow{Measure::any_refusal, "any_refusal", ItemKind::generation, true},
    MeasureRow{Measure::compliance, "compliance", ItemKind::generation, true},
    MeasureRow{Measure::released_math, "released_math", ItemKind::generation, true},
    MeasureRow{Measure::token_perplexity, "token_perplexity", ItemKind::text, false},
    MeasureRow{Measure::word_perplexity, "word_perplexity", ItemKind::text, false},
    MeasureRow{Measure::byte_perplexity, "byte_perplexity", ItemKind::text, false},
    MeasureRow{Measure::bits_per_byte, "bits_per_byte", ItemKind::text, false},
};

// One of a few names.
template <typename Value, std::size_t count>
Value one_of(const TomlTable& table, const std::string& key, const std::string& given,
             const std::array<std::pair<std::string_view, Value>, count>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    if (given == name) return value;
    names.emplace_back(name);
  }
  throw table.error(key, str_cat(quote(given), " is not known; known are ", join(names, ", ")),
                    did_you_mean(nearest(given, names)));
}

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

RowCondition read_condition(TomlTable table) {
  RowCondition condition;
  condition.field = needed_template(table, "field");
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

const MeasureRow& measure_row(const TomlTable& table, const std::string& name, ItemKind kind) {
  std::vector<std::string> known;
  for (const auto& row : measures) {
    if (row.kind != kind) continue;
    if (row.name == name) return row;
    known.emplace_back(row.name);
  }
  throw table.error(
      "measure",
      str_cat(quote(name), " is not a measure of this kind of task; it has ", join(known, ", ")),
      did_you_mean(nearest(name, known)));
}

bool is_of_refusal(Measure measure) {
  return measure == Measure::full_refusal || measure == Measure::partial_refusal ||
         measure == Measure::any_refusal || measure == Measure::compliance;
}

RefusalOptions read_refusal(TomlTable& table) {
  RefusalOptions options;
  constexpr std::array lists{std::pair{std::string_view("onset"), &refusal_phrases},
                             std::pair{std::string_view("xstest"), &xstest_phrases},
                             std::pair{std::string_view("advbench"), &advbench_phrases}};
  if (const auto name = table.find_text("phrases")) {
    options.phrases = &one_of(table, "phrases", *name, lists)();
  }
  if (const auto window = table.find_integer("window", 1, no_limit)) {
    options.window = static_cast<std::size_t>(*window);
  }
  return options;
}

struct MetricOfParts {
  TaskMetric metric;
  std::vector<std::string> parts;  // empty: all
};

MetricOfParts read_metric(TomlTable table, ItemKind kind) {
  MetricOfParts result;
  TaskMetric& metric = result.metric;
  const std::string measure = table.text("measure");
  const MeasureRow& row = measure_row(table, measure, kind);
  metric.measure = row.measure;
  metric.name = table.find_text("name").value_or(measure);
  metric.higher_is_better = table.find_boolean("higher_is_better").value_or(row.higher_is_better);
  metric.filters = table.texts("filters");
  result.parts = table.texts("parts");
  if (metric.measure == Measure::exact_match) {
    metric.exact_match.ignore_case = table.find_boolean("ignore_case").value_or(false);
    metric.exact_match.ignore_punctuation =
        table.find_boolean("ignore_punctuation").value_or(false);
    for (const auto& regex : table.texts("regexes_to_ignore")) {
      metric.exact_match.regexes_to_ignore.emplace_back(regex, table.place("regexes_to_ignore"));
    }
  }
  if (is_of_refusal(metric.measure)) metric.refusal = read_refusal(table);
  table.refuse_others();
  return result;
}

struct Part {
  std::string name;
  std::string alias;
  RowCondition condition;
};

// The parts as they are listed, or as the groups name them.
std::vector<Part> read_parts(TomlTable& file, std::vector<TaskGroup>& groups,
                             const std::string& task) {
  std::vector<Part> parts;
  for (auto& table : file.tables("parts")) {
    Part part{.name = table.text("name"), .alias = {}, .condition = {}};
    part.alias = table.find_text("alias").value_or(part.name);
    if (auto condition = table.find_table("where")) part.condition = read_condition(*condition);
    table.refuse_others();
    parts.push_back(std::move(part));
  }
  for (auto& table : file.tables("groups")) {
    const std::string name = table.text("name");
    TaskGroup group{.name = str_cat(task, "_", name),
                    .alias = table.find_text("alias").value_or(name),
                    .members = {}};
    for (const auto& member : table.texts("parts")) {
      const bool is_known = std::any_of(parts.begin(), parts.end(),
                                        [&](const Part& part) { return part.name == member; });
      if (!is_known) parts.push_back({.name = member, .alias = member, .condition = {}});
      group.members.push_back(str_cat(task, "_", member));
    }
    if (group.members.empty()) throw table.error("parts", "names no part");
    table.refuse_others();
    groups.push_back(std::move(group));
  }
  return parts;
}

void put_part(std::string& path, const std::string& part) {
  static constexpr std::string_view place = "{part}";
  for (auto at = path.find(place); at != std::string::npos; at = path.find(place, at)) {
    path.replace(at, place.size(), part);
    at += part.size();
  }
}

Task task_of_part(Task task, const Part& part, const std::vector<MetricOfParts>& metrics) {
  task.name += "_" + part.name;
  task.alias = part.alias;
  task.names["part"] = part.name;
  if (!part.condition.field.empty()) task.condition = part.condition;
  put_part(task.data.file, part.name);
  put_part(task.data.labels, part.name);
  if (task.fewshot.data) put_part(task.fewshot.data->file, part.name);
  for (const auto& [metric, parts] : metrics) {
    const bool is_its =
        parts.empty() || std::find(parts.begin(), parts.end(), part.name) != parts.end();
    if (is_its) task.metrics.push_back(metric);
  }
  return task;
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
  for (auto& table : file.tables("filters")) task.filters.push_back(read_filter(table));
  return task;
}

void check_metrics(const Task& task, const TomlTable& file) {
  if (task.metrics.empty())
    throw file.error("", str_cat("task ", quote(task.name), " has no metric"));
  std::vector<std::string> known;
  for (const auto& filter : task.filters) known.push_back(filter.name);
  for (const auto& metric : task.metrics) {
    for (const auto& name : metric.filters) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw file.error("metrics", str_cat("name the filter ", quote(name), ", which is not there"),
                       did_you_mean(nearest(name, known)));
    }
  }
}

}  // namespace

std::string_view name_of(Measure measure) {
  for (const auto& row : measures) {
    if (row.measure == measure) return row.name;
  }
  return "";
}

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
  const auto parts = read_parts(file, result.groups, common.name);
  file.refuse_others();
  if (parts.empty()) {
    for (const auto& [metric, names] : metrics) common.metrics.push_back(metric);
    result.tasks.push_back(std::move(common));
  } else {
    TaskGroup all{.name = common.name, .alias = common.name, .members = {}};
    for (const auto& group : result.groups) all.members.push_back(group.name);
    for (const auto& part : parts) {
      result.tasks.push_back(task_of_part(common, part, metrics));
      if (result.groups.empty()) all.members.push_back(result.tasks.back().name);
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
