// The table of `onset eval`.

#include <algorithm>
#include <map>
#include <set>

#include "eval_report.h"
#include "onset/base/error.h"

namespace onset::app {
namespace {

constexpr std::size_t count_width = 6;
constexpr std::size_t shots_width = 6;
constexpr std::size_t value_width = 8;
// What is left of 80 columns for the names of tasks and metrics.
constexpr std::size_t names_width = 49;
constexpr std::size_t most_metric_width = 32;

std::string number_text(double value) { return value >= 100 ? compact(value) : fixed(value, 4); }

struct Row {
  std::string task;
  std::string count;
  std::string shots;
  std::string metric;
  std::string value;
  std::string error;
};

class Table {
 public:
  Table(std::span<const AnsweredTask> tasks, std::span<const GroupResult> groups,
        const TextStyle& style)
      : tasks_(tasks), groups_(groups), style_(style) {}

  std::string text() {
    std::set<std::string> members;
    for (const auto& group : groups_) {
      members.insert(group.group.members.begin(), group.group.members.end());
    }
    for (const auto& group : groups_) {
      if (!members.contains(group.group.name)) add_group(group, 0);
    }
    for (const auto& task : tasks_) {
      if (!members.contains(task.result.task.name)) add_task(task, 0);
    }
    return lines();
  }

 private:
  void add_group(const GroupResult& group, std::size_t depth) {
    add_rows(group.group.alias, depth, group.scored, shots_of(group.group), group.metrics);
    for (const auto& member : group.group.members) {
      for (const auto& other : groups_) {
        if (other.group.name == member) add_group(other, depth + 1);
      }
      for (const auto& task : tasks_) {
        if (task.result.task.name == member) add_task(task, depth + 1);
      }
    }
  }

  void add_task(const AnsweredTask& task, std::size_t depth) {
    const TaskResult& result = task.result;
    add_rows(depth == 0 ? result.task.name : result.task.alias, depth, result.scored,
             result.task.kind == ItemKind::text ? "" : str_cat(result.fewshot), result.metrics);
  }

  // The examples of all tasks in the group, where they are as many.
  [[nodiscard]] std::string shots_of(const TaskGroup& group) const {
    std::string shots;
    for (const auto& member : group.members) {
      std::string found;
      for (const auto& other : groups_) {
        if (other.group.name == member) found = shots_of(other.group);
      }
      for (const auto& task : tasks_) {
        if (task.result.task.name == member) found = str_cat(task.result.fewshot);
      }
      if (!shots.empty() && shots != found) return "";
      shots = found;
    }
    return shots;
  }

  void add_rows(const std::string& name, std::size_t depth, std::int64_t count,
                const std::string& shots, const std::vector<MetricResult>& metrics) {
    Row row{std::string(2 * depth, ' ') + name, str_cat(count), shots, "-", "", ""};
    if (metrics.empty()) rows_.push_back(row);
    for (const auto& metric : metrics) {
      row.metric = metric.metric;
      if (metric.filter != "none") row.metric += ", " + metric.filter;
      row.value = number_text(metric.value);
      row.error = metric.stderror ? number_text(*metric.stderror) : "";
      rows_.push_back(row);
      row.task.clear();
      row.count.clear();
      row.shots.clear();
    }
  }

  // Columns as wide as their longest name, the tasks' cut where both do not fit.
  [[nodiscard]] std::string lines() const {
    std::size_t task_width = 4;
    std::size_t metric_width = 6;
    for (const auto& row : rows_) {
      task_width = std::max(task_width, display_width(row.task));
      metric_width = std::max(metric_width, display_width(row.metric));
    }
    metric_width = std::min(metric_width, most_metric_width);
    task_width = std::min(task_width, names_width - metric_width);
    std::string text = pad_right("task", task_width) + column("n", count_width) +
                       column("shots", shots_width) + "  " + pad_right("metric", metric_width) +
                       column("value", value_width) + "   stderr\n";
    for (const auto& row : rows_) {
      text += pad_right(fit(row.task, task_width, style_.utf8), task_width) +
              column(row.count, count_width) + column(row.shots, shots_width) + "  " +
              pad_right(fit(row.metric, metric_width, style_.utf8), metric_width) +
              column(row.value, value_width);
      if (!row.error.empty()) text += (style_.utf8 ? " ± " : " +-") + row.error;
      while (text.ends_with(' ')) text.pop_back();
      text += '\n';
    }
    return text;
  }

  std::span<const AnsweredTask> tasks_;
  std::span<const GroupResult> groups_;
  TextStyle style_;
  std::vector<Row> rows_;
};

}  // namespace

std::string scores_text(std::span<const AnsweredTask> tasks, std::span<const GroupResult> groups,
                        const TextStyle& style) {
  return Table(tasks, groups, style).text();
}

std::string remarks_text(std::span<const AnsweredTask> tasks) {
  std::string text;
  const auto say = [&](const TaskResult& result, std::int64_t count, const std::string& what) {
    if (count == 0) return;
    text +=
        wrap(str_cat(result.task.name, ": ", count, " of ", result.scored + result.skipped, what),
             80, 0) +
        "\n";
  };
  for (const auto& task : tasks) {
    const TaskResult& result = task.result;
    say(result, result.skipped,
        " items were too long for the model and were left out of the "
        "scores");
    say(result, result.cut, " items were too long for the model and lost their beginning");
    say(result, result.truncated,
        " answers ended at the largest number of new tokens, before the model was done");
  }
  return text;
}

}  // namespace onset::app
