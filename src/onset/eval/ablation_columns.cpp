#include <algorithm>
#include <limits>

#include "onset/eval/ablation_run.h"
#include "onset/eval/metrics.h"

namespace onset {
namespace {

constexpr double no_score = std::numeric_limits<double>::quiet_NaN();

ScoreColumn& column_of(std::vector<ScoreColumn>& columns, const ScoreColumn& like) {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const ScoreColumn& column) {
    return column.task == like.task && column.filter == like.filter && column.metric == like.metric;
  });
  if (found != columns.end()) return *found;
  columns.push_back(like);
  return columns.back();
}

void add_windows(std::vector<ScoreColumn>& columns, const AblationTask& task,
                 const std::vector<ItemAnswer>& answers) {
  ScoreColumn& column = column_of(columns, {.task = task.column,
                                            .metric = "nll",
                                            .is_nll = true,
                                            .higher_is_better = false,
                                            .values = {},
                                            .weights = {}});
  for (const ItemAnswer& answer : answers) {
    const auto windows = static_cast<double>(answer.nll_per_window.size());
    for (const double nll : answer.nll_per_window) {
      column.values.push_back(nll);
      column.weights.push_back(static_cast<double>(answer.scored_tokens) / windows);
    }
  }
}

double value_of(const std::vector<FilteredScores>& scores, const std::string& filter,
                const std::string& metric) {
  for (const FilteredScores& filtered : scores) {
    if (filtered.filter != filter) continue;
    for (const DocumentValue& value : filtered.values) {
      if (value.metric == metric) return value.value;
    }
  }
  return no_score;
}

void add_scores(std::vector<ScoreColumn>& columns, const AblationTask& task,
                const std::vector<ItemAnswer>& answers) {
  std::vector<std::vector<FilteredScores>> scores(task.items.size());
  for (std::size_t i = 0; i < std::min(answers.size(), task.items.size()); ++i) {
    if (!answers[i].skipped) scores[i] = score(task.task, task.items[i], answers[i]);
  }
  std::vector<std::string> filters;
  for (const auto& filter : task.task.filters) filters.push_back(filter.name);
  if (filters.empty()) filters.emplace_back("none");
  for (const std::string& filter : filters) {
    for (const TaskMetric& metric : task.task.metrics) {
      const bool declared =
          metric.filters.empty() ||
          std::find(metric.filters.begin(), metric.filters.end(), filter) != metric.filters.end();
      if (!declared) continue;
      ScoreColumn& column = column_of(columns, {.task = task.column,
                                                .filter = filter,
                                                .metric = metric.name,
                                                .higher_is_better = metric.higher_is_better,
                                                .values = {},
                                                .weights = {}});
      for (const auto& own : scores) column.values.push_back(value_of(own, filter, metric.name));
    }
  }
}

}  // namespace

std::vector<ScoreColumn> score_columns(const std::vector<AblationTask>& tasks,
                                       const std::vector<std::vector<ItemAnswer>>& answers) {
  std::vector<ScoreColumn> columns;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (tasks[t].task.kind == ItemKind::text) {
      add_windows(columns, tasks[t], answers[t]);
    } else {
      add_scores(columns, tasks[t], answers[t]);
    }
  }
  return columns;
}

}  // namespace onset
