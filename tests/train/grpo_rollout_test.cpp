// GRPO's own completions: the policy that is scored is the one that sampled.
#include <cmath>

#include "onset/tokenizer/tokenizer.h"
#include "onset/train/grpo.h"
#include "support/support.h"
#include "train/run_support.h"

namespace onset::testing {
namespace {

// Rewards that differ within a group, so that every completion counts.
RewardSums rising(std::span<const RewardedCompletion> completions) {
  RewardSums sums;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    sums.values.push_back(static_cast<double>(i % 4));
  }
  return sums;
}

// The largest |ratio - 1| of the first update.
double first_ratio_error(bool rollout_masked, double temperature) {
  FullPolicy full(data("training/llama_tiny"),
                  Json{{"k", 16}, {"first_layer", 1}, {"mode", "frozen"}});
  const Tokenizer tokenizer = Tokenizer::open(unpacked("tokenizers/qwen3"));
  GrpoOptions options;
  options.window = {.batch = 4, .micro_batches = 2};
  options.group = 4;
  options.loss.max_completion_length = 12;
  options.sampling.temperature = temperature;
  options.rollout_masked = rollout_masked;
  std::vector<RolloutPrompt> prompts(2);
  prompts[0].prompt = {1, 17, 9, 44};
  prompts[1].prompt = {1, 5, 201};
  const Ranks alone;
  GrpoObjective objective(full.policy, nullptr, &tokenizer, prompts, {}, rising, options, alone);
  return value_of(objective.accumulate(0), "ratio_error");
}

TEST(GrpoRollout, TheFirstRatioIsOneUnderTheMaskAndATemperature) {
  EXPECT_LT(first_ratio_error(true, 0.6), 1e-4);
  EXPECT_LT(first_ratio_error(true, 1.0), 1e-4);
}

TEST(GrpoRollout, TheFirstRatioIsNotOneWhereTheRolloutLeavesTheMaskOut) {
  EXPECT_GT(first_ratio_error(false, 0.6), 1e-3);
}

}  // namespace
}  // namespace onset::testing
