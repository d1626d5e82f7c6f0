// How much better a completion is than the others of its prompt (GRPO, Shao et al. 2402.03300).
// Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onset {

enum class RewardScale {
  group,  // A_i = (r_i - mean) / (std + epsilon), std of the group with divisor G - 1
  batch,  // the same with the std of all rewards of the step
  none,   // A_i = r_i - mean (Dr. GRPO, Liu et al. 2503.20783)
};

struct AdvantageOptions {
  RewardScale scale = RewardScale::group;
  double epsilon = 1e-4;
};

struct Advantages {
  std::vector<double> values;  // [C]; 0 where there was no reward
  std::vector<std::uint8_t>
      scored;              // [C]; 0: the reward abstained, so the completion is not trained
  double reward_mean = 0;  // over the scored completions
  double reward_std = 0;   // mean of the groups' std; of the step's with `batch`
  double frac_reward_zero_std = 0;  // share of groups in which all rewards are equal
  double frac_abstained = 0;        // share of completions without a reward
};

// rewards: [C], groups one after the other, each of group_size; NaN where the reward abstained:
// that completion counts neither in its group's mean nor in its std. A group of equal rewards, or
// with one reward only, has advantages of exactly 0. Computed in float64. Where ranks share a step,
// call it with the rewards of all of them. Throws usage errors where the count is no multiple of
// group_size or group_size is below 2, and input errors for infinite rewards.
[[nodiscard]] Advantages group_advantages(std::span<const double> rewards, std::int64_t group_size,
                                          const AdvantageOptions& options);

}  // namespace onset
