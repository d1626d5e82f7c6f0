// An ablation: masks of many kinds against one baseline, on the same items. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/paired.h"
#include "onset/wemask/mask.h"

namespace onset {

struct ModelConfig;

// How the dims of a mask are chosen. `random_energy`: random ones that hold the same share of the
// masked token's attention input as those of `weight` (energy_control.h).
enum class AblationArm { weight, activation, magnitude, lowest, random, random_energy };
[[nodiscard]] std::string_view name_of(AblationArm arm);
// Throws a usage error that lists the names.
[[nodiscard]] AblationArm parse_arm(std::string_view name);
[[nodiscard]] inline bool is_random(AblationArm arm) {
  return arm == AblationArm::random || arm == AblationArm::random_energy;
}

// All combinations of these are run. Sizes are rates or numbers of dims, never both.
struct AblationGrid {
  std::vector<AblationArm> arms;
  std::vector<double> rates;
  std::vector<std::int64_t> ks;
  std::vector<std::int64_t> from_layers;
  std::vector<double> gammas;
  std::vector<MaskPlacement> placements;
  std::vector<MaskTokens> tokens;
  std::int64_t seeds = 3;  // masks of each random arm
};

// One combination of everything but the arm: what arms are compared within.
struct AblationPoint {
  std::optional<double> rate;
  std::optional<std::int64_t> k;
  std::int64_t from_layer = 0;
  double gamma = 1;
  MaskPlacement placement = MaskPlacement::post_norm;
  MaskTokens tokens = MaskTokens::first;

  [[nodiscard]] MaskOptions options() const;
};

// One row of the result: an arm at a point, with as many masks as it has seeds.
struct AblationSetting {
  AblationArm arm = AblationArm::weight;
  std::size_t point = 0;             // index into the points
  std::vector<std::uint64_t> seeds;  // of its masks; one, 0, where nothing is random
};

// Throws what make_mask() would say of sizes, gammas and layers, before anything is computed. First
// layers may be missing yet.
void check_grid(const AblationGrid& grid, const ModelConfig& config);

[[nodiscard]] std::vector<AblationPoint> points_of(const AblationGrid& grid);
// By point, then by arm in the order given.
[[nodiscard]] std::vector<AblationSetting> settings_of(const AblationGrid& grid);
// "weight, rate 0.25, layers from 12": what differs between the settings of the grid.
[[nodiscard]] std::string setting_name(const AblationGrid& grid, const AblationPoint& point,
                                       AblationArm arm);

// The scores of all items under one condition, by task, filter and metric; the same columns and
// items in every condition.
struct ScoreColumn {
  std::string task;
  std::string filter = "none";
  std::string metric;
  bool is_nll = false;  // negative log-likelihoods of windows of text, in nats; weight: tokens
  bool higher_is_better = true;
  std::vector<double> values;   // NaN: no score
  std::vector<double> weights;  // empty: 1 each
};

// The mean over masks, item by item; NaN where one has no score.
[[nodiscard]] std::vector<ScoreColumn> mean_columns(
    std::span<const std::vector<ScoreColumn>> conditions);

// `b` against `a`, over the items that have a score in both. Nothing without any.
[[nodiscard]] std::optional<PairedResult> compare_columns(const ScoreColumn& a,
                                                          const ScoreColumn& b,
                                                          const PairedOptions& options);

// How one setting did in one column.
struct AblationScore {
  std::optional<PairedResult> result;  // against the baseline; of several masks their mean
  double holm_p = 1;                   // corrected for all settings of this column
  // The differences of the single masks, where there are several.
  std::optional<Interval> range;
  // Against the random arms at the same point: the setting less the control, item by item. Their p
  // are corrected together for all settings of this column.
  std::optional<PairedResult> against_random;
  std::optional<PairedResult> against_energy;
  double random_holm_p = 1;
  double energy_holm_p = 1;
};

struct AblationRow {
  AblationSetting setting;
  std::vector<AblationScore> scores;  // by column
};

// `conditions`: of every setting the columns of each of its masks.
[[nodiscard]] std::vector<AblationRow> ablation_rows(
    std::span<const AblationSetting> settings, std::span<const ScoreColumn> baseline,
    std::span<const std::vector<std::vector<ScoreColumn>>> conditions,
    const PairedOptions& options);

// What else was measured of a row, the mean over its masks.
struct AblationMeasures {
  std::optional<double> sink_rate = std::nullopt;
  // Share of the masked tokens' attention input, mean over the masked layers (mask_effect.h).
  std::optional<double> energy_removed = std::nullopt;
  bool stopped = false;  // significantly worse on the first items, so not asked for the others
};

struct AblationResult {
  AblationGrid grid;
  std::vector<AblationPoint> points;
  std::vector<ScoreColumn> baseline;
  std::vector<AblationRow> rows;
  std::vector<AblationMeasures> measures;  // by row
  std::optional<double> baseline_sink_rate = std::nullopt;
  PairedOptions options;
};

// sum(values) / sum(weights) over the items with a score.
[[nodiscard]] double mean_of(const ScoreColumn& column);

}  // namespace onset
