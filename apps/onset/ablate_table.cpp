// The table of `onset ablate`, at most 80 columns wide.

#include <algorithm>
#include <cmath>

#include "ablate_report.h"
#include "compare_report.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/ablation_figures.h"

namespace onset::app {
namespace {

constexpr std::size_t name_width = 26;

std::string optional_percent(const std::optional<double>& share) {
  return share && std::isfinite(*share) ? fixed(100 * *share, 1) : "-";
}

// What all settings share.
std::string grid_text(const AblationGrid& grid) {
  std::vector<std::string> parts;
  if (grid.from_layers.size() == 1) {
    parts.push_back(str_cat("layers from ", grid.from_layers.front()));
  }
  if (grid.gammas.size() == 1) parts.push_back(str_cat("gamma ", shortest(grid.gammas.front())));
  if (grid.placements.size() == 1) parts.emplace_back(name_of(grid.placements.front()));
  if (grid.tokens.size() == 1) parts.push_back(str_cat("token ", name_of(grid.tokens.front())));
  if (std::any_of(grid.arms.begin(), grid.arms.end(), is_random)) {
    parts.push_back(str_cat("random: the mean of ", counted(grid.seeds, "mask")));
  }
  return join(parts, ", ");
}

std::string row_text(const AblationResult& result, std::size_t r, std::size_t c) {
  const auto& row = result.rows[r];
  const auto& score = row.scores[c];
  const ColumnNumbers numbers(result.baseline[c]);
  const auto name = setting_name(result.grid, result.points[row.setting.point], row.setting.arm);
  std::string text = pad_right(name, name_width);
  if (display_width(name) >= name_width) text = name + "\n" + std::string(name_width, ' ');
  if (!score.result) return text + column("-", 7) + "\n";
  const auto& measures = result.measures[r];
  return text + column(numbers.score(score.result->b), 7) +
         column(numbers.difference(score.result->difference), 8) +
         column(numbers.interval(score.result->interval), 17) + column(p_text(score.holm_p), 6) +
         column(optional_percent(measures.sink_rate), 7) +
         column(optional_percent(measures.energy_removed), 7) + (measures.stopped ? " s" : "") +
         "\n";
}

std::string column_table(const AblateReport& report, std::size_t c, const TextStyle& style) {
  const auto& result = report.result;
  const ScoreColumn& scores = result.baseline[c];
  const ColumnNumbers numbers(scores);
  std::string text =
      wrap(str_cat(printable(column_name(scores), style.utf8), ": ", numbers.score(mean_of(scores)),
                   numbers.unit(), " without a mask, ", scores.values.size(),
                   scores.is_nll ? " windows" : " items"),
           80, 0) +
      "\n" + pad_right("", name_width) + column("score", 7) + column("change", 8) +
      column(share_text(1 - result.options.alpha) + " interval", 17) + column("Holm", 6) +
      column("sinks", 7) + column("energy", 7) + "\n";
  text += pad_right("no mask", name_width) + column(numbers.score(mean_of(scores)), 7) +
          std::string(8 + 17 + 6, ' ') + column(optional_percent(result.baseline_sink_rate), 7) +
          "\n";
  for (std::size_t r = 0; r < result.rows.size(); ++r) text += row_text(result, r, c);
  return text + "\n";
}

std::string legend(const AblateReport& report) {
  std::string text =
      "change: less the model without a mask, over the same items, with the interval of the paired "
      "difference; Holm: p corrected for all settings; sinks: percent of heads whose alpha is "
      "above "
      ".3; energy: percent of the masked token's attention input that the mask takes away; ";
  if (report.budget > 0) {
    text += str_cat("s: stopped after the first ", report.budget, " items of each task; ");
  }
  return wrap(text + "formulas: docs/ablate.md", 80, 0) + "\n\n";
}

}  // namespace

std::string ablate_text(const AblateReport& report, const TextStyle& style) {
  std::string text = "model  " + wrap(printable(report.path, style.utf8), 80, 7) + "\n" +
                     "masks  " + wrap(grid_text(report.result.grid), 80, 7) + "\n\n";
  for (const std::size_t c : shown_columns(report.result)) text += column_table(report, c, style);
  text += legend(report);
  for (const auto& paragraph : ablate_paragraphs(report)) {
    text += wrap(printable(paragraph, style.utf8), 80, 0) + "\n\n";
  }
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace onset::app
