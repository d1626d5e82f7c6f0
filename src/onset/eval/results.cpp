#include "onset/eval/results.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>

#include "onset/base/error.h"
#include "onset/base/sha256.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

std::string_view output_type(ItemKind kind) {
  switch (kind) {
    case ItemKind::choice:
      return "multiple_choice";
    case ItemKind::generation:
      return "generate_until";
    case ItemKind::text:
      return "loglikelihood_rolling";
  }
  return "";
}

OrderedJson templates_json(const std::vector<PromptTemplate>& templates) {
  OrderedJson list = OrderedJson::array();
  for (const auto& one : templates) list.push_back(one.source());
  return list;
}

OrderedJson filter_json(const AnswerFilter& filter) {
  OrderedJson steps = OrderedJson::array();
  for (const auto& step : filter.steps) {
    OrderedJson json{{"function", name_of(step.function)}};
    if (step.function == FilterFunction::regex) json["group_select"] = step.group_select;
    steps.push_back(std::move(json));
  }
  return {{"name", filter.name}, {"filter", std::move(steps)}};
}

// What the task's file says, as far as it decides the scores.
OrderedJson config_json(const TaskResult& result) {
  const Task& task = result.task;
  OrderedJson json{{"task", task.name},
                   {"task_alias", task.alias},
                   {"file", valid_utf8(task.file)},
                   {"data", task.data.file},
                   {"output_type", output_type(task.kind)},
                   {"num_fewshot", result.fewshot}};
  if (task.kind == ItemKind::text) {
    json["doc_to_target"] = task.windows.text.source();
  } else {
    json["description"] = task.prompt.description.source();
    json["doc_to_text"] = task.prompt.question.source();
    if (!task.prompt.chat_question.empty()) {
      json["doc_to_text_in_chats"] = task.prompt.chat_question.source();
    }
    json["target_delimiter"] = task.prompt.target_delimiter;
    json["fewshot_delimiter"] = task.prompt.fewshot_delimiter;
  }
  if (task.kind == ItemKind::choice) {
    json["doc_to_choice"] = templates_json(task.choices.texts);
    json["doc_to_target"] = task.choices.gold.source();
  }
  if (task.kind == ItemKind::generation) {
    json["doc_to_target"] = task.prompt.target.source();
    json["generation_kwargs"] = {{"until", task.generation.stop},
                                 {"max_gen_toks", task.generation.max_new_tokens}};
    OrderedJson filters = OrderedJson::array();
    for (const auto& filter : task.filters) filters.push_back(filter_json(filter));
    json["filter_list"] = std::move(filters);
  }
  OrderedJson metrics = OrderedJson::array();
  for (const auto& metric : task.metrics) {
    metrics.push_back({{"metric", metric.name},
                       {"measure", name_of(metric.measure)},
                       {"higher_is_better", metric.higher_is_better}});
  }
  json["metric_list"] = std::move(metrics);
  json["metadata"] = {{"version", task.version}};
  return json;
}

// "acc,none" and "acc_stderr,none" of every metric.
void add_metrics(OrderedJson& json, const std::vector<MetricResult>& metrics) {
  for (const auto& metric : metrics) {
    json[metric.metric + "," + metric.filter] = finite_or_null(metric.value);
    json[metric.metric + "_stderr," + metric.filter] =
        metric.stderror ? finite_or_null(*metric.stderror) : OrderedJson("N/A");
  }
}

OrderedJson directions_json(const std::vector<MetricResult>& metrics) {
  OrderedJson json = OrderedJson::object();
  for (const auto& metric : metrics) json[metric.metric] = metric.higher_is_better;
  return json;
}

// The hashes of all documents of a task, hashed.
std::string task_hash(const AnsweredTask& task) {
  std::string all;
  for (const auto& item : task.items) {
    all += document_hash(item.document);
    all += sha256(item.context);
    all += sha256(item.target);
  }
  return sha256(all);
}

}  // namespace

AnsweredTask grade(Task task, std::vector<EvalItem> items, std::vector<ItemAnswer> answers) {
  AnsweredTask graded{
      .result = {}, .items = std::move(items), .answers = std::move(answers), .scores = {}};
  TaskResult& result = graded.result;
  result.task = std::move(task);
  std::vector<std::vector<FilteredScores>> counted;
  for (std::size_t i = 0; i < graded.items.size(); ++i) {
    const ItemAnswer& answer = graded.answers.at(i);
    result.skipped += answer.skipped ? 1 : 0;
    result.cut += answer.cut ? 1 : 0;
    result.truncated += answer.truncated ? 1 : 0;
    graded.scores.emplace_back();
    if (answer.skipped) continue;
    graded.scores.back() = score(result.task, graded.items[i], answer);
    counted.push_back(graded.scores.back());
    ++result.scored;
  }
  result.metrics = aggregate(result.task, counted);
  return graded;
}

OrderedJson results_json(std::span<const AnsweredTask> tasks, std::span<const GroupResult> groups,
                         const ResultFacts& facts) {
  OrderedJson results = OrderedJson::object();
  OrderedJson group_scores = OrderedJson::object();
  OrderedJson subtasks = OrderedJson::object();
  OrderedJson configs = OrderedJson::object();
  OrderedJson versions = OrderedJson::object();
  OrderedJson shots = OrderedJson::object();
  OrderedJson directions = OrderedJson::object();
  OrderedJson counts = OrderedJson::object();
  OrderedJson hashes = OrderedJson::object();
  for (const auto& task : tasks) {
    const TaskResult& result = task.result;
    const std::string& name = result.task.name;
    results[name] = {{"name", name}, {"alias", result.task.alias}, {"sample_len", result.scored}};
    add_metrics(results[name], result.metrics);
    configs[name] = config_json(result);
    versions[name] = result.task.version;
    shots[name] = result.fewshot;
    directions[name] = directions_json(result.metrics);
    counts[name] = {{"original", result.documents},
                    {"effective", result.scored},
                    {"skipped", result.skipped},
                    {"cut", result.cut},
                    {"truncated", result.truncated}};
    hashes[name] = task_hash(task);
  }
  for (const auto& group : groups) {
    const std::string& name = group.group.name;
    OrderedJson json{{"name", name}, {"alias", group.group.alias}, {"sample_len", group.scored}};
    add_metrics(json, group.metrics);
    results[name] = json;
    group_scores[name] = std::move(json);
    subtasks[name] = group.group.members;
    directions[name] = directions_json(group.metrics);
  }
  OrderedJson document{{"results", std::move(results)}};
  if (!groups.empty()) document["groups"] = std::move(group_scores);
  document["group_subtasks"] = std::move(subtasks);
  document["configs"] = std::move(configs);
  document["versions"] = std::move(versions);
  document["n-shot"] = std::move(shots);
  document["higher_is_better"] = std::move(directions);
  document["n-samples"] = std::move(counts);
  document["config"] = facts.config;
  document["wemask"] = facts.wemask;
  document["task_hashes"] = std::move(hashes);
  for (const auto& [key, value] : facts.extra.items()) document[key] = value;
  return document;
}

std::string time_in_names(std::chrono::system_clock::time_point time) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  constexpr std::int64_t million = 1000000;
  const auto seconds = static_cast<std::time_t>(micros / million);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H-%M-%S", &parts);
  std::string fraction = std::to_string(micros % million);
  fraction.insert(0, 6 - fraction.size(), '0');
  return std::string(text.data(), length) + "." + fraction;
}

std::string document_hash(const OrderedJson& document) {
  return sha256(document.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace onset
