#include "onset/eval/task_metrics.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "onset/base/strings.h"
#include "onset/eval/task_names.h"

namespace onset {
namespace {

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

// Two metrics of one name would be counted as one with every document twice.
Error twice(const TomlTable& file, const std::string& metric, const std::string& under) {
  return file.error("metrics", str_cat("have two of the name ", quote(metric), under),
                    "take one out, or give it a name of its own: name = \"..\"");
}

}  // namespace

std::string_view name_of(Measure measure) {
  for (const auto& row : measures) {
    if (row.measure == measure) return row.name;
  }
  return "";
}

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

void check_metrics(const Task& task, const TomlTable& file) {
  if (task.metrics.empty())
    throw file.error("", str_cat("task ", quote(task.name), " has no metric"));
  std::vector<std::string> filters;
  for (const auto& filter : task.filters) filters.push_back(filter.name);
  std::set<std::pair<std::string, std::string>> rows;  // of results
  for (const auto& metric : task.metrics) {
    for (const auto& name : metric.filters) {
      if (std::find(filters.begin(), filters.end(), name) != filters.end()) continue;
      throw file.error("metrics", str_cat("name the filter ", quote(name), ", which is not there"),
                       did_you_mean(nearest(name, filters)));
    }
    for (const auto& filter : metric.filters.empty() ? filters : metric.filters) {
      if (rows.emplace(metric.name, filter).second) continue;
      throw twice(file, metric.name, str_cat(" under the filter ", quote(filter)));
    }
    if (filters.empty() && !rows.emplace(metric.name, "").second) {
      throw twice(file, metric.name, "");
    }
  }
}

}  // namespace onset
