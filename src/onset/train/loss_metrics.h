// The totals of the losses under the names of metrics.h.
#pragma once

#include "onset/train/advantages.h"
#include "onset/train/dpo_loss.h"
#include "onset/train/grpo_loss.h"
#include "onset/train/metrics.h"

namespace onset {

// The share of completions that no reward judged.
inline constexpr const char* abstained_metric = "frac_reward_abstained";
// The share of prompts whose completions all have the same reward.
inline constexpr const char* equal_rewards_metric = "frac_reward_zero_std";

// Means over the window's pairs; nothing where there are none.
[[nodiscard]] Metrics metrics_of(const DpoTotals& totals);
// Means over the window's counted tokens; kl only where there is a reference.
[[nodiscard]] Metrics metrics_of(const GrpoTotals& totals, bool has_reference);
// The reward's metrics only where there was one.
[[nodiscard]] Metrics metrics_of(const Advantages& advantages);

}  // namespace onset
