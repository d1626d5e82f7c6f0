#include "onset/train/advantages.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"

namespace onset {
namespace {

// Of the rewards that did not abstain.
struct Spread {
  std::int64_t count = 0;
  double mean = 0;
  double deviation = 0;  // divisor count - 1; 0 where all are equal or there is one
  bool equal = true;
};

Spread spread_of(std::span<const double> rewards) {
  std::vector<double> scored;
  std::copy_if(rewards.begin(), rewards.end(), std::back_inserter(scored),
               [](double reward) { return !std::isnan(reward); });
  Spread spread;
  spread.count = static_cast<std::int64_t>(scored.size());
  if (scored.empty()) return spread;
  const auto [lowest, highest] = std::minmax_element(scored.begin(), scored.end());
  spread.equal = *lowest == *highest;
  double sum = 0;
  for (const double reward : scored) sum += reward;
  spread.mean = sum / static_cast<double>(scored.size());
  if (spread.equal) return spread;
  double squares = 0;
  for (const double reward : scored) squares += (reward - spread.mean) * (reward - spread.mean);
  spread.deviation = std::sqrt(squares / static_cast<double>(scored.size() - 1));
  return spread;
}

void check(std::span<const double> rewards, std::int64_t group_size,
           const AdvantageOptions& options) {
  if (group_size < 2) {
    throw usage_error(str_cat("a group has ", group_size, " completions, expected 2 or more"),
                      "an advantage is a difference from the others of the group");
  }
  if (static_cast<std::int64_t>(rewards.size()) % group_size != 0) {
    throw usage_error(
        str_cat(rewards.size(), " rewards are no whole number of groups of ", group_size));
  }
  if (!(options.epsilon >= 0)) {
    throw usage_error(str_cat("the epsilon of advantages is ", options.epsilon, ", expected 0 up"));
  }
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    require_input(!std::isinf(rewards[i]), "the reward of completion ", i, " is infinite");
  }
}

}  // namespace

Advantages group_advantages(std::span<const double> rewards, std::int64_t group_size,
                            const AdvantageOptions& options) {
  check(rewards, group_size, options);
  const Spread batch = spread_of(rewards);
  const auto size = static_cast<std::size_t>(group_size);
  Advantages result;
  result.reward_mean = batch.mean;
  std::int64_t groups = 0;  // with a reward at all
  std::int64_t equal_groups = 0;
  double deviations = 0;
  for (std::size_t begin = 0; begin < rewards.size(); begin += size) {
    const auto group = rewards.subspan(begin, size);
    const Spread spread = spread_of(group);
    if (spread.count > 0) {
      ++groups;
      equal_groups += spread.equal ? 1 : 0;
      deviations += spread.deviation;
    }
    const double deviation =
        options.scale == RewardScale::batch ? batch.deviation : spread.deviation;
    const double divisor = options.scale == RewardScale::none ? 1 : deviation + options.epsilon;
    for (const double reward : group) {
      const bool scored = !std::isnan(reward);
      const bool differs = scored && !spread.equal;
      result.values.push_back(differs ? (reward - spread.mean) / divisor : 0);
      result.scored.push_back(scored ? 1 : 0);
    }
  }
  if (!rewards.empty()) {
    result.frac_abstained =
        1 - static_cast<double>(batch.count) / static_cast<double>(rewards.size());
  }
  if (groups > 0) {
    result.reward_std = options.scale == RewardScale::batch
                            ? batch.deviation
                            : deviations / static_cast<double>(groups);
    result.frac_reward_zero_std = static_cast<double>(equal_groups) / static_cast<double>(groups);
  }
  return result;
}

}  // namespace onset
