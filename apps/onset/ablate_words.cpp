// The verdict of `onset ablate` in words, and how its numbers are written.

#include <algorithm>
#include <cmath>

#include "ablate_report.h"
#include "compare_report.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/ablation_figures.h"

namespace onset::app {
namespace {

std::string with_sign(const std::string& text, double value) {
  const bool zero = text.find_first_not_of("-0.") == std::string::npos;
  return value > 0 && !zero ? "+" + text : text;
}

std::string name_of_row(const AblationResult& result, const AblationRow& row) {
  return setting_name(result.grid, result.points[row.setting.point], row.setting.arm);
}

// "weight, rate 0.25 (+1.20, -0.3 to +2.7)".
std::string row_words(const AblationResult& result, const AblationRow& row, std::size_t c,
                      const PairedResult& found) {
  const ColumnNumbers numbers(result.baseline[c]);
  return str_cat(name_of_row(result, row), " (", numbers.difference(found.difference),
                 found.interval ? ", " + numbers.interval(found.interval) : "", ")");
}

std::string list_words(const std::vector<std::string>& parts) {
  constexpr std::size_t most = 6;
  if (parts.size() <= most) return join(parts, "; ");
  return str_cat(join({parts.begin(), parts.begin() + most}, "; "), "; and ", parts.size() - most,
                 " more");
}

// Against the model without a mask.
std::string baseline_words(const AblateReport& report, std::size_t c) {
  const auto& result = report.result;
  const double alpha = result.options.alpha;
  const ScoreColumn& column = result.baseline[c];
  std::vector<std::string> better;
  std::vector<std::string> worse;
  std::size_t tested = 0;
  double detectable = 0;
  bool can_find = true;  // in every setting
  for (const auto& row : result.rows) {
    const auto& score = row.scores[c];
    if (!score.result) continue;
    ++tested;
    can_find = can_find && score.result->detectable.has_value();
    detectable = std::max(detectable, score.result->detectable.value_or(0));
    if (score.holm_p > alpha) continue;
    const bool higher = score.result->difference > 0;
    (higher == column.higher_is_better ? better : worse)
        .push_back(row_words(result, row, c, *score.result));
  }
  const ColumnNumbers numbers(column);
  std::string text =
      str_cat(column_name(column), ": of ", counted(static_cast<std::int64_t>(tested), "setting"),
              ", after correcting for as many tests, ");
  if (better.empty() && worse.empty()) {
    text += "none differs from the model without a mask. ";
    if (!can_find) return text + "So few items could not have shown a difference of any size.";
    return str_cat(text, "A true difference below ", numbers.score(detectable), numbers.unit(),
                   " could have been missed in one setting or another.");
  }
  text += better.empty() ? "none is better" : "better: " + list_words(better);
  return text + (worse.empty() ? "; none is worse." : "; worse: " + list_words(worse) + ".");
}

// Against the random controls.
std::string control_words(const AblateReport& report, std::size_t c) {
  const auto& result = report.result;
  const double alpha = result.options.alpha;
  std::vector<std::string> standing;
  std::size_t tested = 0;
  for (const auto& row : result.rows) {
    const auto& score = row.scores[c];
    const auto add = [&](const std::optional<PairedResult>& found, double p, const char* control) {
      if (!found) return;
      ++tested;
      if (p <= alpha) {
        standing.push_back(str_cat(row_words(result, row, c, *found), " against ", control));
      }
    };
    add(score.against_random, score.random_holm_p, "random");
    add(score.against_energy, score.energy_holm_p, "random of equal energy");
  }
  if (tested == 0) return "";
  const std::string text =
      str_cat(column_name(result.baseline[c]), ", against random masks of the same size: ");
  if (standing.empty()) {
    return str_cat(text, "in ", counted(static_cast<std::int64_t>(tested), "comparison"),
                   " none differs, after correcting for as many tests. Which dims are masked has ",
                   "not been shown to matter here.");
  }
  return str_cat(text, "of ", counted(static_cast<std::int64_t>(tested), "comparison"),
                 " these differ after correcting for as many tests: ", list_words(standing), ".");
}

}  // namespace

ColumnNumbers::ColumnNumbers(const ScoreColumn& column)
    : points_(!column.is_nll &&
              std::all_of(column.values.begin(), column.values.end(),
                          [](double x) { return std::isnan(x) || x == 0 || x == 1; })),
      nll_(column.is_nll) {}

std::string ColumnNumbers::score(double value) const {
  return points_ ? fixed(100 * value, 2) : fixed(value, 4);
}

std::string ColumnNumbers::difference(double value) const { return with_sign(score(value), value); }

std::string ColumnNumbers::interval(const std::optional<Interval>& interval) const {
  if (!interval) return "-";
  const auto end = [&](double value) {
    return with_sign(points_ ? fixed(100 * value, 1) : fixed(value, 3), value);
  };
  return end(interval->low) + " to " + end(interval->high);
}

const char* ColumnNumbers::unit() const {
  if (points_) return " points";
  return nll_ ? " nats a token" : "";
}

std::vector<std::size_t> shown_columns(const AblationResult& result) {
  std::vector<std::size_t> shown;
  std::vector<std::string> tasks;
  for (std::size_t c = 0; c < result.baseline.size(); ++c) {
    const auto& task = result.baseline[c].task;
    if (std::find(tasks.begin(), tasks.end(), task) != tasks.end()) continue;
    tasks.push_back(task);
    shown.push_back(c);
  }
  return shown;
}

std::vector<std::string> ablate_paragraphs(const AblateReport& report) {
  std::vector<std::string> paragraphs;
  for (const std::size_t c : shown_columns(report.result)) {
    paragraphs.push_back(baseline_words(report, c));
    const auto controls = control_words(report, c);
    if (!controls.empty()) paragraphs.push_back(controls);
  }
  return paragraphs;
}

}  // namespace onset::app
