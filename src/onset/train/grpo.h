// Group relative policy optimisation: completions sampled from the policy itself, with its mask,
// rewarded, and learned from (grpo_loss.h, advantages.h).
#pragma once

#include <optional>
#include <vector>

#include "onset/generate/sampling.h"
#include "onset/train/advantages.h"
#include "onset/train/grpo_loss.h"
#include "onset/train/objective.h"
#include "onset/train/rollout.h"

namespace onset {

class Policy;
class Tokenizer;

struct GrpoOptions {
  WindowShape window;      // of completions: batch * micro_batches * ranks is a multiple of `group`
  std::int64_t group = 8;  // completions of a prompt
  std::int64_t iterations = 1;  // updates from the same completions
  GrpoLossOptions loss;         // max_completion_length is the longest that is sampled
  AdvantageOptions advantages;
  bool mask_truncated = false;   // completions cut off by the length are not trained
  SamplingOptions sampling;      // its seed is that of the run
  bool rollout_masked = true;    // whether completions are sampled with the policy's mask,
  bool reference_masked = true;  // and the reference has it
  std::optional<std::uint64_t> shuffle_seed = {};
  std::int64_t rows_at_once = 64;  // sequences that are sampled at a time
};

class GrpoObjective : public Objective {
 public:
  // Prompts all with or all without given completions; without, `reward` and a tokenizer are
  // needed. `reference`: the policy as the run began, needed where beta is above 0; null: none. All
  // references must outlive it. Usage errors: sizes that do not fit, contradicting options.
  GrpoObjective(Policy& policy, const Policy* reference, const Tokenizer* tokenizer,
                std::vector<RolloutPrompt> prompts, std::vector<RolloutPrompt> held_out,
                RewardFunction reward, const GrpoOptions& options, const Ranks& ranks);

  [[nodiscard]] std::int64_t steps_per_epoch() const override;
  // loss, reward metrics, kl, clip_ratio/, ratio_error, completions/, num_tokens, epoch.
  [[nodiscard]] Metrics accumulate(std::int64_t step) override;
  // eval_reward: the mean over the prompts held out, one completion each.
  [[nodiscard]] Metrics evaluate() override;
  [[nodiscard]] bool can_be_saved() const override { return used_ == 0; }
  [[nodiscard]] OrderedJson progress() const override;
  void restore(const OrderedJson& progress) override;

 private:
  struct Rollout {
    std::vector<RolledOut> answers;  // groups one after the other
    std::vector<double> advantages;
    std::vector<std::uint8_t> counted;
    Metrics metrics;
    double tokens = 0;  // prompts and completions
    // By micro-batch, of this rank's own.
    std::vector<std::vector<double>> old_logps;
    std::vector<std::vector<double>> reference_logps;
  };

  void check_sampling() const;  // that it can be done
  [[nodiscard]] Rollout new_rollout(std::int64_t number);
  [[nodiscard]] std::vector<RolledOut> given(std::span<const std::int64_t> prompts) const;
  // `completions` of each of these prompts of `data`, by all ranks together; the draws are numbered
  // from first_number on.
  [[nodiscard]] std::vector<RolledOut> sampled(const std::vector<RolloutPrompt>& data,
                                               std::span<const std::int64_t> prompts,
                                               std::int64_t completions, std::uint64_t first_number,
                                               Metrics& metrics) const;
  void add_fixed_logps(Rollout& rollout) const;
  [[nodiscard]] std::vector<SftExample> examples_of(const Rollout& rollout,
                                                    std::span<const std::int64_t> answers) const;

  Policy& policy_;
  const Policy* reference_;
  const Tokenizer* tokenizer_;
  std::vector<RolloutPrompt> prompts_;
  std::vector<RolloutPrompt> held_out_;
  RewardFunction reward_;
  GrpoOptions options_;
  const Ranks& ranks_;
  DataWalk walk_;
  Rollout rollout_;
  std::int64_t used_ = 0;  // updates made from the rollout; 0: the next one begins with another
};

}  // namespace onset
