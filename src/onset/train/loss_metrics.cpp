#include "onset/train/loss_metrics.h"

namespace onset {

Metrics metrics_of(const DpoTotals& totals) {
  if (totals.pairs == 0) return {};
  return {{"rewards/chosen", totals.rewards_chosen / totals.pairs},
          {"rewards/rejected", totals.rewards_rejected / totals.pairs},
          {"rewards/margins", totals.margins / totals.pairs},
          {"rewards/accuracies", totals.accurate / totals.pairs},
          {"logps/chosen", totals.logps_chosen / totals.pairs},
          {"logps/rejected", totals.logps_rejected / totals.pairs}};
}

Metrics metrics_of(const GrpoTotals& totals, bool has_reference) {
  if (totals.tokens == 0) return {};
  Metrics metrics;
  if (has_reference) metrics.emplace_back("kl", totals.mean_kl());
  metrics.emplace_back("clip_ratio/low_mean", totals.clipped_low / totals.tokens);
  metrics.emplace_back("clip_ratio/high_mean", totals.clipped_high / totals.tokens);
  metrics.emplace_back("clip_ratio/region_mean", totals.clip_fraction());
  metrics.emplace_back("ratio_error", totals.ratio_error());
  return metrics;
}

Metrics metrics_of(const Advantages& advantages) {
  const Metric abstained{abstained_metric, advantages.frac_abstained};
  // Where there was no reward, it was not 0 either.
  if (advantages.frac_abstained == 1) return {abstained};
  return {{"reward", advantages.reward_mean},
          {"reward_std", advantages.reward_std},
          {equal_rewards_metric, advantages.frac_reward_zero_std},
          abstained};
}

}  // namespace onset
