#include "onset/report/ablation_figures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "onset/base/error.h"
#include "onset/report/figure_data.h"
#include "onset/report/html.h"

namespace onset {
namespace {

const char* tone_of(AblationArm arm) {
  switch (arm) {
    case AblationArm::weight:
      return "first";
    case AblationArm::activation:
      return "ffn";
    case AblationArm::magnitude:
      return "third";
    case AblationArm::lowest:
      return "median";
    case AblationArm::random:
      return "second";
    case AblationArm::random_energy:
      return "soft";
  }
  return "ink";
}

const char* words_of(AblationArm arm) {
  switch (arm) {
    case AblationArm::weight:
      return "largest gains (WeMask)";
    case AblationArm::activation:
      return "largest attention input";
    case AblationArm::magnitude:
      return "largest state";
    case AblationArm::lowest:
      return "smallest gains";
    case AblationArm::random:
      return "random";
    case AblationArm::random_energy:
      return "random, of equal energy";
  }
  return "";
}

// As it is drawn: points for shares, perplexity for negative log-likelihoods.
double drawn(const ScoreColumn& column, double value) {
  if (column.is_nll) return std::exp(value);
  return std::all_of(column.values.begin(), column.values.end(),
                     [](double x) { return std::isnan(x) || (x >= 0 && x <= 1); })
             ? 100 * value
             : value;
}

// What tells the views of a figure apart: everything of a point but its size.
std::string view_name(const AblationGrid& grid, const AblationPoint& point) {
  std::string name = str_cat("layers from ", point.from_layer);
  if (grid.gammas.size() > 1) name += str_cat(", gamma ", point.gamma);
  if (grid.placements.size() > 1) name += str_cat(", ", name_of(point.placement));
  if (grid.tokens.size() > 1) name += str_cat(", token ", name_of(point.tokens));
  return name;
}

double size_of(const AblationPoint& point) {
  return point.k ? static_cast<double>(*point.k) : point.rate.value_or(0);
}

std::string unit_of(const ScoreColumn& column) {
  if (column.is_nll) return "perplexity";
  return drawn(column, 1) == 100 ? column.metric + ", percent" : column.metric;
}

OrderedJson point_json(const AblationResult& result, const AblationRow& row, std::size_t c) {
  const ScoreColumn& column = result.baseline[c];
  const auto& score = row.scores[c];
  const double base = score.result->a;
  const auto at = [&](double difference) { return rounded(drawn(column, base + difference), 4); };
  OrderedJson json{{"x", size_of(result.points[row.setting.point])},
                   {"y", at(score.result->difference)},
                   {"low", nullptr},
                   {"high", nullptr},
                   {"p", rounded(score.holm_p, 4)},
                   {"n", score.result->n}};
  if (score.result->interval) {
    json["low"] = at(score.result->interval->low);
    json["high"] = at(score.result->interval->high);
  }
  return json;
}

// The settings that a picture says most of: those that differ from the baseline after correction.
std::string standing_words(const AblationResult& result, std::size_t c) {
  std::size_t better = 0;
  std::size_t worse = 0;
  std::size_t tested = 0;
  for (const auto& row : result.rows) {
    const auto& score = row.scores[c];
    if (!score.result) continue;
    ++tested;
    if (score.holm_p > result.options.alpha) continue;
    const bool higher = score.result->difference > 0;
    (higher == result.baseline[c].higher_is_better ? better : worse) += 1;
  }
  return str_cat("Of ", tested, " settings ", better, better == 1 ? " is" : " are", " better and ",
                 worse, worse == 1 ? " is" : " are", " worse than unmasked in ",
                 column_name(result.baseline[c]), " after correcting for as many tests");
}

}  // namespace

std::string column_name(const ScoreColumn& column) {
  std::string name = column.task;
  if (column.filter != "none" && !column.filter.empty()) name += ", " + column.filter;
  return name + ", " + column.metric;
}

Figure ablation_score_figure(const AblationResult& result) {
  OrderedJson columns = OrderedJson::array();
  std::vector<std::string> views;
  for (std::size_t c = 0; c < result.baseline.size(); ++c) {
    const ScoreColumn& column = result.baseline[c];
    std::map<std::string, std::map<AblationArm, OrderedJson>> lines;
    for (const auto& row : result.rows) {
      if (!row.scores[c].result) continue;
      const auto view = view_name(result.grid, result.points[row.setting.point]);
      if (std::find(views.begin(), views.end(), view) == views.end()) views.push_back(view);
      auto& points = lines[view][row.setting.arm];
      if (points.is_null()) points = OrderedJson::array();
      points.push_back(point_json(result, row, c));
    }
    OrderedJson by_view = OrderedJson::object();
    for (const auto& [view, arms] : lines) {
      OrderedJson series = OrderedJson::array();
      for (const auto& [arm, points] : arms) {
        series.push_back({{"name", words_of(arm)},
                          {"tone", tone_of(arm)},
                          {"random", is_random(arm)},
                          {"points", points}});
      }
      by_view[view] = std::move(series);
    }
    columns.push_back({{"name", column_name(column)},
                       {"unit", unit_of(column)},
                       {"baseline", rounded(drawn(column, mean_of(column)), 4)},
                       {"views", std::move(by_view)}});
  }
  const auto see = result.baseline.empty() ? std::string() : standing_words(result, 0) + ".";
  return {.id = "ablation-scores",
          .kind = "ablation",
          .see = see,
          .read =
              "A line a way of choosing the dims, over how many of them are masked; the dashed "
              "level is the model without a mask. Bars are intervals of the paired difference from "
              "that level: one that crosses it may be nothing. They are not corrected for the "
              "number of settings. Random lines are means over masks.",
          .alt = "Scores over the share of masked dims, a line for each criterion. " + see,
          .data = {{"size", result.grid.ks.empty() ? "rate" : "k"},
                   {"views", views},
                   {"columns", std::move(columns)}}};
}

Figure ablation_sink_figure(const AblationResult& result) {
  OrderedJson columns = OrderedJson::array();
  for (std::size_t c = 0; c < result.baseline.size(); ++c) {
    const ScoreColumn& column = result.baseline[c];
    std::map<AblationArm, OrderedJson> arms;
    for (std::size_t r = 0; r < result.rows.size(); ++r) {
      const auto& row = result.rows[r];
      if (!row.scores[c].result || !result.measures[r].sink_rate) continue;
      auto& points = arms[row.setting.arm];
      if (points.is_null()) points = OrderedJson::array();
      auto point = point_json(result, row, c);
      point["x"] = rounded(100 * *result.measures[r].sink_rate, 2);
      point["name"] = setting_name(result.grid, result.points[row.setting.point], row.setting.arm);
      points.push_back(std::move(point));
    }
    OrderedJson series = OrderedJson::array();
    for (const auto& [arm, points] : arms) {
      series.push_back({{"name", words_of(arm)}, {"tone", tone_of(arm)}, {"points", points}});
    }
    columns.push_back({{"name", column_name(column)},
                       {"unit", unit_of(column)},
                       {"baseline", rounded(drawn(column, mean_of(column)), 4)},
                       {"series", std::move(series)}});
  }
  const double base = 100 * result.baseline_sink_rate.value_or(std::nan(""));
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const auto& measures : result.measures) {
    if (!measures.sink_rate) continue;
    low = std::min(low, 100 * *measures.sink_rate);
    high = std::max(high, 100 * *measures.sink_rate);
  }
  const std::string see =
      str_cat("Without a mask ", number_text(base), " % of the heads are first-token sinks; under ",
              "the masks ", number_text(low), " to ", number_text(high), " %.");
  return {.id = "ablation-sinks",
          .kind = "ablation_sinks",
          .see = see,
          .read =
              "A point a setting: how many heads still treat the first token as a sink, and the "
              "score. The diamond is the model without a mask. Were partial removal of the sink "
              "best, scores would rise from the diamond and fall again further to the left.",
          .alt = "Scores over the rate of attention sinks, a point for each setting. " + see,
          .data = {{"baseline_sinks", rounded(base, 2)}, {"columns", std::move(columns)}}};
}

}  // namespace onset
