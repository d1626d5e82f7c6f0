#include "onset/eval/ablation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/holm.h"

namespace onset {
namespace {

constexpr std::array<AblationArm, 6> all_arms{AblationArm::weight,    AblationArm::activation,
                                              AblationArm::magnitude, AblationArm::lowest,
                                              AblationArm::random,    AblationArm::random_energy};

// The settings at the same point with that arm; the number of settings where there is none.
std::size_t find_arm(std::span<const AblationSetting> settings, std::size_t point,
                     AblationArm arm) {
  std::size_t i = 0;
  while (i < settings.size() && !(settings[i].point == point && settings[i].arm == arm)) ++i;
  return i;
}

std::optional<Interval> range_of(std::span<const std::vector<ScoreColumn>> masks,
                                 std::size_t column, const ScoreColumn& baseline) {
  if (masks.size() < 2) return std::nullopt;
  Interval range{.low = HUGE_VAL, .high = -HUGE_VAL};
  for (const auto& mask : masks) {
    // One resample: only the difference is wanted.
    const auto result = compare_columns(baseline, mask[column], {.resamples = 1});
    if (!result) return std::nullopt;
    range.low = std::min(range.low, result->difference);
    range.high = std::max(range.high, result->difference);
  }
  return range;
}

double p_or_nan(const std::optional<PairedResult>& result) {
  return result ? result->p : std::numeric_limits<double>::quiet_NaN();
}

void correct(std::vector<AblationRow>& rows, std::size_t column) {
  std::vector<double> baseline;
  std::vector<double> controls;
  for (const auto& row : rows) {
    const AblationScore& score = row.scores[column];
    baseline.push_back(p_or_nan(score.result));
    controls.push_back(p_or_nan(score.against_random));
    controls.push_back(p_or_nan(score.against_energy));
  }
  baseline = holm_adjusted(baseline);
  controls = holm_adjusted(controls);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    AblationScore& score = rows[r].scores[column];
    score.holm_p = baseline[r];
    score.random_holm_p = controls[2 * r];
    score.energy_holm_p = controls[2 * r + 1];
  }
}

}  // namespace

std::string_view name_of(AblationArm arm) {
  switch (arm) {
    case AblationArm::weight:
      return "weight";
    case AblationArm::activation:
      return "activation";
    case AblationArm::magnitude:
      return "magnitude";
    case AblationArm::lowest:
      return "lowest";
    case AblationArm::random:
      return "random";
    case AblationArm::random_energy:
      return "random_energy";
  }
  return "";
}

AblationArm parse_arm(std::string_view name) {
  std::vector<std::string> names;
  for (const AblationArm arm : all_arms) {
    if (name == name_of(arm)) return arm;
    names.emplace_back(name_of(arm));
  }
  throw usage_error(str_cat("unknown criterion ", quote(name)), "known are " + join(names, ", "));
}

MaskOptions AblationPoint::options() const {
  MaskOptions options;
  options.placement = placement;
  options.tokens = tokens;
  options.gamma = gamma;
  options.k = k;
  options.rate = rate;
  options.from_layer = from_layer;
  return options;
}

void check_grid(const AblationGrid& grid, const ModelConfig& config) {
  AblationGrid checked = grid;
  if (checked.from_layers.empty()) checked.from_layers.push_back(0);
  for (const AblationPoint& point : points_of(checked)) {
    check_mask_options(config, point.options());
  }
}

std::vector<AblationPoint> points_of(const AblationGrid& grid) {
  std::vector<AblationPoint> points;
  const std::size_t sizes = grid.ks.empty() ? grid.rates.size() : grid.ks.size();
  for (const MaskTokens tokens : grid.tokens) {
    for (const MaskPlacement placement : grid.placements) {
      for (const double gamma : grid.gammas) {
        for (const std::int64_t from : grid.from_layers) {
          for (std::size_t size = 0; size < sizes; ++size) {
            AblationPoint point;
            if (grid.ks.empty()) {
              point.rate = grid.rates[size];
            } else {
              point.k = grid.ks[size];
            }
            point.from_layer = from;
            point.gamma = gamma;
            point.placement = placement;
            point.tokens = tokens;
            points.push_back(point);
          }
        }
      }
    }
  }
  return points;
}

std::vector<AblationSetting> settings_of(const AblationGrid& grid) {
  std::vector<AblationSetting> settings;
  const std::size_t points = points_of(grid).size();
  for (std::size_t point = 0; point < points; ++point) {
    for (const AblationArm arm : grid.arms) {
      AblationSetting setting{.arm = arm, .point = point, .seeds = {}};
      const std::int64_t masks = is_random(arm) ? grid.seeds : 1;
      for (std::int64_t seed = 0; seed < masks; ++seed) {
        setting.seeds.push_back(static_cast<std::uint64_t>(seed));
      }
      settings.push_back(std::move(setting));
    }
  }
  return settings;
}

std::string setting_name(const AblationGrid& grid, const AblationPoint& point, AblationArm arm) {
  std::string name(name_of(arm));
  if (point.rate) name += str_cat(", rate ", *point.rate);
  if (point.k) name += str_cat(", k ", *point.k);
  if (grid.from_layers.size() > 1) name += str_cat(", from layer ", point.from_layer);
  if (grid.gammas.size() > 1) name += str_cat(", gamma ", point.gamma);
  if (grid.placements.size() > 1) name += str_cat(", ", name_of(point.placement));
  if (grid.tokens.size() > 1) name += str_cat(", token ", name_of(point.tokens));
  return name;
}

std::vector<ScoreColumn> mean_columns(std::span<const std::vector<ScoreColumn>> conditions) {
  std::vector<ScoreColumn> mean = conditions.front();
  for (std::size_t c = 0; c < mean.size(); ++c) {
    for (std::size_t i = 0; i < mean[c].values.size(); ++i) {
      double sum = 0;
      for (const auto& condition : conditions) sum += condition[c].values[i];
      mean[c].values[i] = sum / static_cast<double>(conditions.size());
    }
  }
  return mean;
}

std::optional<PairedResult> compare_columns(const ScoreColumn& a, const ScoreColumn& b,
                                            const PairedOptions& options) {
  std::vector<ScorePair> pairs;
  for (std::size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i) {
    if (!std::isfinite(a.values[i]) || !std::isfinite(b.values[i])) continue;
    pairs.push_back(
        {.a = a.values[i], .b = b.values[i], .weight = a.weights.empty() ? 1 : a.weights[i]});
  }
  if (pairs.empty()) return std::nullopt;
  return compare_paired(pairs, options);
}

double mean_of(const ScoreColumn& column) {
  double sum = 0;
  double weight = 0;
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    if (!std::isfinite(column.values[i])) continue;
    sum += column.values[i];
    weight += column.weights.empty() ? 1 : column.weights[i];
  }
  return sum / weight;
}

std::vector<AblationRow> ablation_rows(
    std::span<const AblationSetting> settings, std::span<const ScoreColumn> baseline,
    std::span<const std::vector<std::vector<ScoreColumn>>> conditions,
    const PairedOptions& options) {
  std::vector<std::vector<ScoreColumn>> means;
  means.reserve(conditions.size());
  for (const auto& masks : conditions) means.push_back(mean_columns(masks));
  std::vector<AblationRow> rows;
  for (std::size_t s = 0; s < settings.size(); ++s) {
    AblationRow row{.setting = settings[s], .scores = {}};
    for (std::size_t c = 0; c < baseline.size(); ++c) {
      const auto against = [&](AblationArm arm) -> std::optional<PairedResult> {
        const std::size_t control = find_arm(settings, settings[s].point, arm);
        if (is_random(settings[s].arm) || control == settings.size()) return std::nullopt;
        return compare_columns(means[control][c], means[s][c], options);
      };
      AblationScore score;
      score.result = compare_columns(baseline[c], means[s][c], options);
      score.range = range_of(conditions[s], c, baseline[c]);
      score.against_random = against(AblationArm::random);
      score.against_energy = against(AblationArm::random_energy);
      row.scores.push_back(score);
    }
    rows.push_back(std::move(row));
  }
  for (std::size_t c = 0; c < baseline.size(); ++c) correct(rows, c);
  return rows;
}

}  // namespace onset
