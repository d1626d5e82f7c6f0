#include "onset/train/run_objective.h"

#include <string>
#include <utility>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/train/adapt.h"
#include "onset/train/dpo.h"
#include "onset/train/grpo.h"
#include "onset/train/sft.h"
#include "onset/wemask/mask.h"

namespace onset {
namespace {

constexpr std::size_t shown_bytes = 200;  // of a row, in a message

// The right answers of all rows, since a run should not end at one in its tenth hour.
void check_answers(const TrainSettings& settings, const RunData& data) {
  std::vector<std::string> own;
  for (const std::string& reward : settings.grpo.reward_funcs) {
    if (!reward.starts_with("command:")) own.push_back(reward);
  }
  if (own.empty()) return;
  const Rewards rewards(own, {}, reward_options(settings.grpo));
  for (const auto* prompts : {&data.prompts, &data.held_out_prompts}) {
    for (const RolloutPrompt& prompt : *prompts) {
      const RewardedCompletion nothing{.prompt = {}, .text = {}, .record = &prompt.record};
      try {
        static_cast<void>(rewards.score(std::span(&nothing, 1)));
      } catch (const Error& error) {
        throw input_error(str_cat(settings.data.train_file, ": ", error.what(), ", in the row ",
                                  whole_characters(prompt.record.dump(), shown_bytes)),
                          error.hint());
      }
    }
  }
}

}  // namespace

RunObjective::RunObjective(const TrainSettings& settings, const std::filesystem::path& path,
                           TrainedModel& trained, const Tokenizer* tokenizer, RunData data,
                           const Ranks& ranks, const Log& log)
    : settings_(settings) {
  switch (settings_.method) {
    case TrainMethod::sft:
    case TrainMethod::pretrain:
      objective_ = std::make_unique<SftObjective>(
          trained.policy(), std::move(data.rows), std::move(data.held_out_rows),
          SftOptions{.window = window(),
                     .shuffle_seed = shuffle_seed(),
                     .seed = seed(),
                     .eval_batch = settings_.trainer.per_device_eval_batch_size},
          ranks);
      return;
    case TrainMethod::dpo:
      make_dpo(trained, std::move(data), ranks);
      return;
    case TrainMethod::grpo:
      make_grpo(path, trained, tokenizer, std::move(data), ranks, log);
      return;
  }
}

RunObjective::~RunObjective() = default;

void RunObjective::take_reference(std::int64_t steps, const Log& log) {
  if (dpo_ == nullptr) return;
  dpo_->take_reference(steps, [&log](std::int64_t done, std::int64_t all) {
    log.step("log-probabilities of the reference", done, all);
  });
}

void RunObjective::make_dpo(TrainedModel& trained, RunData data, const Ranks& ranks) {
  auto dpo = std::make_unique<DpoObjective>(
      trained.policy(), std::move(data.pairs), std::move(data.held_out_pairs),
      DpoOptions{.window = window(),
                 .loss = settings_.dpo.loss,
                 .shuffle_seed = shuffle_seed(),
                 .seed = seed(),
                 .eval_batch = settings_.trainer.per_device_eval_batch_size,
                 .reference_masked = reference_masked()},
      ranks);
  dpo_ = dpo.get();
  objective_ = std::move(dpo);
}

void RunObjective::make_grpo(const std::filesystem::path& path, TrainedModel& trained,
                             const Tokenizer* tokenizer, RunData data, const Ranks& ranks,
                             const Log& log) {
  const GrpoSettings& grpo = settings_.grpo;
  if (!grpo.reward_funcs.empty() && !data.prompts.empty() &&
      !data.prompts.front().completions.empty()) {
    throw usage_error(
        str_cat("the rows of ", settings_.data.train_file,
                " have completions with their rewards: reward_funcs would do nothing"),
        "leave it out, or take the completions out of the file");
  }
  check_answers(settings_, data);
  if (grpo.loss.beta > 0) {
    reference_model_ = Model::open(path, trained.model().options(), log);
    if (!settings_.lora.adapter.empty()) adapt(*reference_model_, settings_.lora.adapter, log);
    reference_ = std::make_unique<Policy>(
        *reference_model_, std::vector<Parameter>(), std::function<void()>(),
        PolicyOptions{.mask = mask_of(settings_.wemask, *reference_model_, {})});
  }
  GrpoOptions options;
  options.window = window();
  options.group = grpo.num_generations;
  options.iterations = grpo.num_iterations;
  options.loss = grpo.loss;
  options.advantages = grpo.advantages;
  options.mask_truncated = grpo.mask_truncated_completions;
  options.sampling = grpo.sampling;
  options.sampling.seed = seed();
  options.reference_masked = reference_masked();
  options.shuffle_seed = shuffle_seed();
  objective_ = std::make_unique<GrpoObjective>(
      trained.policy(), reference_.get(), tokenizer, std::move(data.prompts),
      std::move(data.held_out_prompts), reward_function(), options, ranks);
}

WindowShape RunObjective::window() const {
  return {.batch = settings_.trainer.per_device_train_batch_size,
          .micro_batches = settings_.trainer.gradient_accumulation_steps};
}

std::uint64_t RunObjective::seed() const {
  return static_cast<std::uint64_t>(settings_.trainer.seed);
}

std::optional<std::uint64_t> RunObjective::shuffle_seed() const {
  return settings_.data.shuffle_dataset ? std::optional(seed()) : std::nullopt;
}

bool RunObjective::reference_masked() const {
  return settings_.wemask.reference == ReferenceWemask::same;
}

RewardFunction RunObjective::reward_function() {
  const GrpoSettings& grpo = settings_.grpo;
  if (grpo.reward_funcs.empty()) return {};
  rewards_.emplace(grpo.reward_funcs, grpo.reward_weights, reward_options(grpo));
  return [this](std::span<const RewardedCompletion> completions) {
    return rewards_->score(completions);
  };
}

}  // namespace onset
