#include "onset/eval/metrics.h"

#include <algorithm>
#include <cmath>

#include "onset/eval/number_answer.h"
#include "onset/eval/released_grader.h"
#include "onset/eval/same_answer.h"
#include "onset/tokenizer/python_text.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// White space of Python's regexes: Unicode's, and the separators U+001C to U+001F.
bool is_python_space(char32_t code) {
  return char_class(code) == CharClass::space || (code >= 0x1C && code <= 0x1F);
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

double size_of(const Choice& choice, Measure measure) {
  if (measure == Measure::acc_norm) return static_cast<double>(characters(choice.text));
  if (measure == Measure::acc_bytes) return static_cast<double>(choice.text.size());
  return 1;
}

double choice_value(const EvalItem& item, const ItemAnswer& answer, Measure measure) {
  const auto best = static_cast<std::int64_t>(best_choice(item, answer, measure));
  return item.gold == best ? 1 : 0;
}

DocumentValue text_value(const TaskMetric& metric, const EvalItem& item, const ItemAnswer& answer) {
  DocumentValue value{.metric = metric.name, .value = -answer.nll, .units = 0};
  switch (metric.measure) {
    case Measure::word_perplexity:
      value.units = static_cast<double>(words(item.context));
      break;
    case Measure::byte_perplexity:
    case Measure::bits_per_byte:
      value.units = static_cast<double>(item.context.size());
      break;
    default:
      value.units = static_cast<double>(answer.scored_tokens);
      break;
  }
  return value;
}

// Whether the prompt ended inside a thinking block, as some chat formats write it.
bool opens_thinking(const EvalItem& item) {
  return item.chat && python_strip(item.context).ends_with("<think>");
}

bool refuses(const TaskMetric& metric, const EvalItem& item, const ItemAnswer& answer) {
  RefusalOptions options = metric.refusal;
  options.thinking_opened = opens_thinking(item);
  const Refusal refusal = judge_refusal(answer.text, options);
  switch (metric.measure) {
    case Measure::full_refusal:
      return refusal == Refusal::full;
    case Measure::partial_refusal:
      return refusal == Refusal::partial;
    case Measure::any_refusal:
      return refusal == Refusal::full || refusal == Refusal::partial;
    default:
      return refusal == Refusal::none;
  }
}

bool is_right(const TaskMetric& metric, const EvalItem& item, const ItemAnswer& answer,
              const FilteredAnswer& filtered) {
  switch (metric.measure) {
    case Measure::exact_match:
      return exact_match(filtered.text, item.target, metric.exact_match);
    case Measure::numeric_match:
      return filtered.found && same_number(item.target, filtered.text) == Verdict::equal;
    case Measure::math_equal:
      return filtered.found && same_answer(item.target, filtered.text) == Verdict::equal;
    case Measure::released_math:
      return released_math_correct(item.target, item.context, answer.text);
    default:
      return refuses(metric, item, answer);
  }
}

bool applies(const TaskMetric& metric, const std::string& filter) {
  return metric.filters.empty() ||
         std::find(metric.filters.begin(), metric.filters.end(), filter) != metric.filters.end();
}

std::vector<FilteredScores> score_generation(const Task& task, const EvalItem& item,
                                             const ItemAnswer& answer) {
  static const std::vector<AnswerFilter> plain{{.name = "none", .steps = {}}};
  std::vector<FilteredScores> scores;
  for (const auto& filter : task.filters.empty() ? plain : task.filters) {
    const auto found =
        apply_filter(filter, {.text = answer.text, .thinking_opened = opens_thinking(item)});
    FilteredScores result{
        .filter = filter.name, .answer = found.text, .found = found.found, .values = {}};
    for (const auto& metric : task.metrics) {
      if (!applies(metric, filter.name)) continue;
      result.values.push_back(
          {.metric = metric.name, .value = is_right(metric, item, answer, found) ? 1.0 : 0.0});
    }
    scores.push_back(std::move(result));
  }
  return scores;
}

// exp(-sum of log-likelihoods / units), or the exponent in bits.
double ratio_of(Measure measure, double loglik, double units) {
  const double nats = -loglik / units;
  return measure == Measure::bits_per_byte ? nats / std::log(2.0) : std::exp(nats);
}

const TaskMetric* find_metric(const Task& task, const std::string& name) {
  for (const auto& metric : task.metrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

struct Column {
  std::string metric;
  std::string filter;
  std::vector<double> values;
  double units = 0;
  bool is_ratio = false;
};

// Values of each metric under each filter, in order of appearance.
std::vector<Column> columns_of(std::span<const std::vector<FilteredScores>> scores) {
  std::vector<Column> columns;
  for (const auto& document : scores) {
    for (const auto& filtered : document) {
      for (const auto& value : filtered.values) {
        auto column = std::find_if(columns.begin(), columns.end(), [&](const Column& other) {
          return other.metric == value.metric && other.filter == filtered.filter;
        });
        if (column == columns.end()) {
          columns.push_back({.metric = value.metric, .filter = filtered.filter, .values = {}});
          column = columns.end() - 1;
        }
        column->values.push_back(value.value);
        column->is_ratio = value.units.has_value();
        column->units += value.units.value_or(0);
      }
    }
  }
  return columns;
}

// The tasks within a group, those of its groups among them.
std::vector<const TaskResult*> tasks_in(const TaskGroup& group,
                                        const std::vector<TaskGroup>& groups,
                                        std::span<const TaskResult> tasks) {
  std::vector<const TaskResult*> members;
  for (const auto& name : group.members) {
    for (const auto& task : tasks) {
      if (task.task.name == name) members.push_back(&task);
    }
    for (const auto& other : groups) {
      if (other.name != name) continue;
      const auto inner = tasks_in(other, groups, tasks);
      members.insert(members.end(), inner.begin(), inner.end());
    }
  }
  return members;
}

// What is collected of one metric over the tasks of a group.
struct Pool {
  MetricResult result;
  double sum = 0;
  double variance = 0;  // sum over tasks of (n - 1) n se^2
  std::int64_t tasks = 0;
  bool has_errors = true;
};

MetricResult pooled(Pool pool) {
  const auto documents = static_cast<double>(pool.result.count);
  pool.result.value = pool.sum / documents;
  if (pool.has_errors && pool.result.count > pool.tasks) {
    const double variance = pool.variance / (documents - static_cast<double>(pool.tasks));
    pool.result.stderror = std::sqrt(variance / documents);
  }
  return std::move(pool.result);
}

}  // namespace

std::int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::int64_t words(std::string_view text) {
  std::int64_t count = 1;
  bool in_space = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, length] = decode_char(text, at);
    const bool is_space = is_python_space(code);
    if (is_space && !in_space) ++count;
    in_space = is_space;
    at += length;
  }
  return count;
}

std::size_t best_choice(const EvalItem& item, const ItemAnswer& answer, Measure measure) {
  std::size_t best = 0;
  double largest = 0;
  for (std::size_t i = 0; i < item.choices.size(); ++i) {
    const double value = answer.loglik.at(i) / size_of(item.choices[i], measure);
    if (i > 0 && value <= largest) continue;
    best = i;
    largest = value;
  }
  return best;
}

std::vector<FilteredScores> score(const Task& task, const EvalItem& item,
                                  const ItemAnswer& answer) {
  if (item.kind == ItemKind::generation) return score_generation(task, item, answer);
  FilteredScores scores;
  for (const auto& metric : task.metrics) {
    if (item.kind == ItemKind::text) {
      scores.values.push_back(text_value(metric, item, answer));
    } else {
      scores.values.push_back(
          {.metric = metric.name, .value = choice_value(item, answer, metric.measure)});
    }
  }
  return {std::move(scores)};
}

double mean(std::span<const double> values) {
  return sum_of(values) / static_cast<double>(values.size());
}

std::optional<double> standard_error(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double centre = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1)) / std::sqrt(n);
}

std::vector<MetricResult> aggregate(const Task& task,
                                    std::span<const std::vector<FilteredScores>> scores) {
  std::vector<MetricResult> results;
  for (const auto& column : columns_of(scores)) {
    const TaskMetric* metric = find_metric(task, column.metric);
    MetricResult result{.metric = column.metric,
                        .filter = column.filter,
                        .value = 0,
                        .stderror = std::nullopt,
                        .higher_is_better = metric == nullptr || metric->higher_is_better,
                        .count = static_cast<std::int64_t>(column.values.size())};
    if (column.is_ratio) {
      result.value = ratio_of(metric == nullptr ? Measure::token_perplexity : metric->measure,
                              sum_of(column.values), column.units);
    } else {
      result.value = mean(column.values);
      result.stderror = standard_error(column.values);
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<GroupResult> aggregate_groups(const std::vector<TaskGroup>& groups,
                                          std::span<const TaskResult> tasks) {
  std::vector<GroupResult> results;
  for (const auto& group : groups) {
    GroupResult result{.group = group, .scored = 0, .metrics = {}};
    std::vector<Pool> pools;
    for (const TaskResult* task : tasks_in(group, groups, tasks)) {
      result.scored += task->scored;
      if (task->task.kind == ItemKind::text) continue;
      for (const auto& metric : task->metrics) {
        auto pool = std::find_if(pools.begin(), pools.end(), [&](const Pool& other) {
          return other.result.metric == metric.metric && other.result.filter == metric.filter;
        });
        if (pool == pools.end()) {
          pools.push_back({.result = metric});
          pool = pools.end() - 1;
          pool->result.count = 0;
          pool->result.stderror.reset();
        }
        const auto n = static_cast<double>(metric.count);
        const double error = metric.stderror.value_or(0);
        pool->result.count += metric.count;
        pool->sum += metric.value * n;
        pool->variance += (n - 1) * n * error * error;
        pool->has_errors = pool->has_errors && metric.stderror.has_value();
        ++pool->tasks;
      }
    }
    for (auto& pool : pools) result.metrics.push_back(pooled(std::move(pool)));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace onset
