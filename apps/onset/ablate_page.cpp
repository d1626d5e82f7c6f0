// The JSON and the page of `onset ablate`.

#include <cmath>

#include "ablate_report.h"
#include "compare_report.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/comparison_json.h"
#include "onset/report/ablation_figures.h"
#include "scan_report.h"

namespace onset::app {
namespace {

OrderedJson number_or_null(const std::optional<double>& value) {
  return value ? finite_or_null(*value) : OrderedJson(nullptr);
}

OrderedJson interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return OrderedJson::array({finite_or_null(interval->low), finite_or_null(interval->high)});
}

OrderedJson result_json(const std::optional<PairedResult>& result, double holm_p) {
  if (!result) return nullptr;
  return {{"n", result->n},
          {"score", finite_or_null(result->b)},
          {"difference", finite_or_null(result->difference)},
          {"interval", interval_json(result->interval)},
          {"interval_method", name_of(result->method)},
          {"wins", result->wins},
          {"losses", result->losses},
          {"test", name_of(result->test)},
          {"p", finite_or_null(result->p)},
          {"holm_p", finite_or_null(holm_p)},
          {"detectable", number_or_null(result->detectable)}};
}

OrderedJson score_json(const ScoreColumn& column, const AblationScore& score) {
  return {{"task", column.task},
          {"filter", column.filter},
          {"metric", column.metric},
          {"against_baseline", result_json(score.result, score.holm_p)},
          {"range_over_masks", interval_json(score.range)},
          {"against_random", result_json(score.against_random, score.random_holm_p)},
          {"against_random_energy", result_json(score.against_energy, score.energy_holm_p)}};
}

OrderedJson row_json(const AblationResult& result, std::size_t r) {
  const AblationRow& row = result.rows[r];
  const AblationPoint& point = result.points[row.setting.point];
  OrderedJson scores = OrderedJson::array();
  for (std::size_t c = 0; c < row.scores.size(); ++c) {
    scores.push_back(score_json(result.baseline[c], row.scores[c]));
  }
  return {{"name", setting_name(result.grid, point, row.setting.arm)},
          {"criterion", name_of(row.setting.arm)},
          {"rate", number_or_null(point.rate)},
          {"k", point.k ? OrderedJson(*point.k) : OrderedJson(nullptr)},
          {"from_layer", point.from_layer},
          {"gamma", point.gamma},
          {"placement", name_of(point.placement)},
          {"token", name_of(point.tokens)},
          {"seeds", row.setting.seeds},
          {"stopped", result.measures[r].stopped},
          {"sink_rate", number_or_null(result.measures[r].sink_rate)},
          {"energy_removed", number_or_null(result.measures[r].energy_removed)},
          {"scores", scores}};
}

Table score_table(const AblationResult& result, std::size_t c) {
  const ScoreColumn& column = result.baseline[c];
  const ColumnNumbers numbers(column);
  Table table{
      .caption = column_name(column),
      .header = {"mask", "items", "score", "change", "interval", "Holm p", "sinks, %", "energy, %"},
      .numeric = {false, true, true, true, true, true, true, true},
      .rows = {}};
  const auto share = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? fixed(100 * *value, 1) : std::string("-");
  };
  table.rows.push_back({"no mask", str_cat(column.values.size()), numbers.score(mean_of(column)),
                        "", "", "", share(result.baseline_sink_rate), ""});
  for (std::size_t r = 0; r < result.rows.size(); ++r) {
    const auto& row = result.rows[r];
    const auto& score = row.scores[c];
    if (!score.result) continue;
    table.rows.push_back(
        {setting_name(result.grid, result.points[row.setting.point], row.setting.arm) +
             (result.measures[r].stopped ? " (stopped)" : ""),
         str_cat(score.result->n), numbers.score(score.result->b),
         numbers.difference(score.result->difference), numbers.interval(score.result->interval),
         p_text(score.holm_p), share(result.measures[r].sink_rate),
         share(result.measures[r].energy_removed)});
  }
  return table;
}

}  // namespace

OrderedJson ablate_json(const AblateReport& report) {
  const auto& result = report.result;
  OrderedJson baseline = OrderedJson::array();
  for (const auto& column : result.baseline) {
    baseline.push_back({{"task", column.task},
                        {"filter", column.filter},
                        {"metric", column.metric},
                        {"items", column.is_nll ? "windows" : "documents"},
                        {"n", column.values.size()},
                        {"higher_is_better", column.higher_is_better},
                        {"score", finite_or_null(mean_of(column))}});
  }
  OrderedJson rows = OrderedJson::array();
  for (std::size_t r = 0; r < result.rows.size(); ++r) rows.push_back(row_json(result, r));
  return {{"model", report.model},
          {"options",
           {{"alpha", result.options.alpha},
            {"resamples", result.options.resamples},
            {"seed", result.options.seed},
            {"budget", report.budget > 0 ? OrderedJson(report.budget) : OrderedJson(nullptr)}}},
          {"baseline",
           {{"sink_rate", number_or_null(result.baseline_sink_rate)}, {"scores", baseline}}},
          {"settings", rows}};
}

Page ablate_page(const AblateReport& report, const OrderedJson& run) {
  const auto& result = report.result;
  Section pictures{.id = "pictures", .title = "Scores under masks"};
  Figure scores = ablation_score_figure(result);
  for (std::size_t c = 0; c < result.baseline.size(); ++c) {
    scores.tables.push_back(score_table(result, c));
  }
  pictures.figures.push_back(std::move(scores));
  if (result.baseline_sink_rate) pictures.figures.push_back(ablation_sink_figure(result));
  Section about{.id = "about", .title = "About this page"};
  about.text.emplace_back(
      "Differences are paired item by item. Intervals are the paired bootstrap's, or Bonett and "
      "Price's where fewer than ten items changed; p is McNemar's exact test or that of sign "
      "flips, corrected by Holm for all settings of a score. No difference shown is not no "
      "difference.");
  about.facts = {{"model", printable(report.path, true)},
                 {"made", str_cat(run["started"].get<std::string>(), " by onset ",
                                  run["version"].get<std::string>())}};
  Page page{.kind = "onset ablate",
            .heading = model_name(report.path),
            .lead = ablate_paragraphs(report),
            .highlights = {},
            .sections = {},
            .shared = OrderedJson::object()};
  page.sections.push_back(std::move(pictures));
  page.sections.push_back(std::move(about));
  return page;
}

}  // namespace onset::app
