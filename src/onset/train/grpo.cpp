#include "onset/train/grpo.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "onset/base/error.h"
#include "onset/train/completion_logps.h"
#include "onset/train/loss_metrics.h"
#include "onset/train/rank_totals.h"
#include "onset/train/rollout.h"

namespace onset {
namespace {

void check(const GrpoOptions& options, const Ranks& ranks) {
  check(options.loss);
  if (options.group < 2) {
    throw usage_error(str_cat("num_generations is ", options.group, ", expected 2 or above"),
                      "a completion is compared with others of its prompt");
  }
  const std::int64_t window = options.window.examples(ranks);
  if (window % options.group != 0) {
    throw usage_error(str_cat("an update is made of ", window, " completions, which is no multiple",
                              " of the ", options.group, " of a prompt"),
                      "change per_device_train_batch_size, gradient_accumulation_steps or "
                      "num_generations");
  }
  if (options.iterations < 1) {
    throw usage_error(str_cat("num_iterations is ", options.iterations, ", expected 1 or above"));
  }
  if (!(options.sampling.temperature > 0)) {
    throw usage_error("GRPO samples completions: the temperature must be above 0");
  }
}

std::vector<double> to_doubles(const at::Tensor& values) {
  const at::Tensor wide = values.detach().to(at::kCPU, at::kDouble).contiguous();
  return {wide.const_data_ptr<double>(), wide.const_data_ptr<double>() + wide.numel()};
}

at::Tensor tensor_like(const std::vector<double>& values, const at::Tensor& like) {
  return at::tensor(values, at::kDouble).to(like.options().requires_grad(false));
}

}  // namespace

GrpoObjective::GrpoObjective(Policy& policy, const Policy* reference, const Tokenizer* tokenizer,
                             std::vector<RolloutPrompt> prompts,
                             std::vector<RolloutPrompt> held_out, RewardFunction reward,
                             const GrpoOptions& options, const Ranks& ranks)
    : policy_(policy),
      reference_(reference),
      tokenizer_(tokenizer),
      prompts_(std::move(prompts)),
      held_out_(std::move(held_out)),
      reward_(std::move(reward)),
      options_(options),
      ranks_(ranks),
      walk_(prompts_.size(), options.shuffle_seed) {
  check(options_, ranks_);
  if (options_.loss.beta > 0 && reference_ == nullptr) {
    throw usage_error("beta is above 0, and there is no reference model");
  }
  for (const RolloutPrompt& prompt : prompts_) {
    const auto size = static_cast<std::int64_t>(prompt.completions.size());
    if (size == 0) {
      check_sampling();
      continue;
    }
    require_input(size == options_.group, "a prompt has ", size,
                  " completions, num_generations is ", options_.group);
  }
}

void GrpoObjective::check_sampling() const {
  if (!reward_) {
    throw usage_error("the data have prompts alone, and nothing rewards what is sampled from them",
                      "set reward_funcs, or give rows of prompt_ids, completions and rewards");
  }
  if (tokenizer_ == nullptr) {
    throw usage_error("completions are sampled as text, and the model has no tokenizer",
                      "put the tokenizer's files beside the model, or give rows of prompt_ids, "
                      "completions and rewards");
  }
}

std::int64_t GrpoObjective::steps_per_epoch() const {
  const std::int64_t prompts = options_.window.examples(ranks_) / options_.group;
  return options_.iterations * micro_batch_count(prompts_.size(), prompts);
}

std::vector<RolledOut> GrpoObjective::given(std::span<const std::int64_t> prompts) const {
  std::vector<RolledOut> answers;
  const auto& ends = policy_.model().config().eos;
  for (const std::int64_t index : prompts) {
    const RolloutPrompt& prompt = prompts_[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < prompt.completions.size(); ++i) {
      const TokenIds& ids = prompt.completions[i];
      answers.push_back({.prompt = index,
                         .ids = ids,
                         .ended = std::find(ends.begin(), ends.end(), ids.back()) != ends.end(),
                         .reward = prompt.rewards[i]});
    }
  }
  return answers;
}

std::vector<RolledOut> GrpoObjective::sampled(const std::vector<RolloutPrompt>& data,
                                              std::span<const std::int64_t> prompts,
                                              std::int64_t completions, std::uint64_t first_number,
                                              Metrics& metrics) const {
  RolloutRequest request{.completions = completions,
                         .max_length = options_.loss.max_completion_length,
                         .sampling = options_.sampling,
                         .mask = options_.rollout_masked ? policy_.mask() : nullptr,
                         .rows_at_once = options_.rows_at_once};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (static_cast<int>(i % static_cast<std::size_t>(ranks_.count())) != ranks_.rank()) continue;
    request.prompts.push_back(&data[static_cast<std::size_t>(prompts[i])]);
    request.indices.push_back(prompts[i]);
    request.numbers.push_back(first_number + i);
  }
  std::vector<RolledOut> own = roll_out(policy_.model(), *tokenizer_, request);
  if (!own.empty()) metrics = reward_all(request, *tokenizer_, own, reward_);
  return gathered(own, prompts, ranks_, metrics);
}

GrpoObjective::Rollout GrpoObjective::new_rollout(std::int64_t number) {
  const std::int64_t count = options_.window.examples(ranks_) / options_.group;
  const std::vector<std::int64_t> prompts = walk_.take(count);
  Rollout rollout;
  if (prompts_[static_cast<std::size_t>(prompts.front())].completions.empty()) {
    rollout.answers = sampled(prompts_, prompts, options_.group,
                              static_cast<std::uint64_t>(number * count), rollout.metrics);
  } else {
    rollout.answers = given(prompts);
  }
  std::vector<double> rewards;
  std::vector<std::int64_t> lengths;
  std::vector<bool> ended;
  for (const RolledOut& answer : rollout.answers) {
    rewards.push_back(answer.reward);
    lengths.push_back(static_cast<std::int64_t>(answer.ids.size()));
    ended.push_back(answer.ended);
    rollout.tokens += static_cast<double>(
        answer.ids.size() + prompts_[static_cast<std::size_t>(answer.prompt)].prompt.size());
  }
  const Advantages advantages = group_advantages(rewards, options_.group, options_.advantages);
  rollout.advantages = advantages.values;
  rollout.counted = advantages.scored;
  for (std::size_t i = 0; i < ended.size(); ++i) {
    if (options_.mask_truncated && !ended[i]) rollout.counted[i] = 0;
  }
  for (const auto& metric : metrics_of(advantages)) rollout.metrics.push_back(metric);
  for (const auto& metric : completion_metrics(lengths, ended)) rollout.metrics.push_back(metric);
  add_fixed_logps(rollout);
  return rollout;
}

std::vector<SftExample> GrpoObjective::examples_of(const Rollout& rollout,
                                                   std::span<const std::int64_t> answers) const {
  std::vector<SftExample> examples;
  for (const std::int64_t index : answers) {
    const RolledOut& answer = rollout.answers[static_cast<std::size_t>(index)];
    examples.push_back(
        completion_example(prompts_[static_cast<std::size_t>(answer.prompt)].prompt, answer.ids));
  }
  return examples;
}

// The log-probabilities under the policy that sampled, and under the reference.
void GrpoObjective::add_fixed_logps(Rollout& rollout) const {
  const c10::NoGradGuard no_grad;
  const std::vector<std::int64_t> all = all_numbers(rollout.answers.size());
  const auto micro_batches =
      static_cast<std::size_t>(micro_batch_count(all.size(), options_.window.batch));
  rollout.old_logps.resize(micro_batches);
  rollout.reference_logps.resize(micro_batches);
  const double temperature = options_.sampling.temperature;
  for_own_micro_batches(all, options_.window.batch, ranks_, [&](auto chosen, std::int64_t number) {
    const auto examples = examples_of(rollout, chosen);
    auto& old = rollout.old_logps[static_cast<std::size_t>(number)];
    for (const std::int64_t index : chosen) {
      const auto& logps = rollout.answers[static_cast<std::size_t>(index)].logps;
      old.insert(old.end(), logps.begin(), logps.end());
    }
    // With one update a rollout the policy is still the one that sampled: see accumulate().
    if (old.empty() && options_.iterations > 1) {
      old = to_doubles(policy_.logps(pointers_to(examples), {.temperature = temperature}).values);
    }
    if (reference_ == nullptr) return;
    rollout.reference_logps[static_cast<std::size_t>(number)] =
        to_doubles(reference_
                       ->logps(pointers_to(examples),
                               {.temperature = temperature, .masked = options_.reference_masked})
                       .values);
  });
}

Metrics GrpoObjective::accumulate(std::int64_t step) {
  if (used_ == 0) {
    rollout_ = new_rollout(step / options_.iterations);
    walk_.add_tokens(rollout_.tokens);
  }
  const std::vector<std::int64_t> window = all_numbers(rollout_.answers.size());
  GrpoWindow sizes{.completions = static_cast<double>(window.size()),
                   .micro_batches = static_cast<double>(
                       micro_batch_count(window.size(), options_.window.batch))};
  for (const std::int64_t index : window) {
    const auto answer = static_cast<std::size_t>(index);
    if (rollout_.counted[answer] != 0) {
      sizes.tokens += static_cast<double>(rollout_.answers[answer].ids.size());
    }
  }
  GrpoTotals totals;
  for_own_micro_batches(
      window, options_.window.batch, ranks_, [&](auto chosen, std::int64_t micro_batch) {
        policy_.draw_dropout(dropout_seed(options_.sampling.seed, step, micro_batch));
        const auto examples = examples_of(rollout_, chosen);
        const auto number = static_cast<std::size_t>(micro_batch);
        const TokenLogps logps =
            policy_.logps(pointers_to(examples), {.temperature = options_.sampling.temperature});
        GrpoCompletions completions;
        completions.logps = logps.values;
        const auto& old = rollout_.old_logps[number];
        completions.old_logps =
            old.empty() ? logps.values.detach() : tensor_like(old, logps.values);
        if (reference_ != nullptr) {
          completions.reference_logps = tensor_like(rollout_.reference_logps[number], logps.values);
        }
        for (const std::int64_t index : chosen) {
          const auto answer = static_cast<std::size_t>(index);
          completions.lengths.push_back(
              static_cast<std::int64_t>(rollout_.answers[answer].ids.size()));
          completions.advantages.push_back(rollout_.advantages[answer]);
          completions.counted.push_back(rollout_.counted[answer]);
        }
        const GrpoLoss loss = grpo_loss(completions, options_.loss, sizes);
        loss.loss.backward();
        totals += loss.totals;
      });
  totals = merged(totals, ranks_);
  used_ = (used_ + 1) % options_.iterations;
  Metrics metrics{{"loss", totals.loss}};
  metrics.insert(metrics.end(), rollout_.metrics.begin(), rollout_.metrics.end());
  for (const auto& metric : metrics_of(totals, reference_ != nullptr)) metrics.push_back(metric);
  walk_.add_metrics(metrics);
  return metrics;
}

Metrics GrpoObjective::evaluate() {
  if (held_out_.empty() || !reward_) return {};
  // Numbers of draws that no rollout of a run takes.
  constexpr std::uint64_t first_number = std::uint64_t{1} << 62U;
  Metrics metrics;
  const auto all = all_numbers(held_out_.size());
  const std::vector<RolledOut> answers = sampled(held_out_, all, 1, first_number, metrics);
  double sum = 0;
  double count = 0;
  for (const RolledOut& answer : answers) {
    if (std::isnan(answer.reward)) continue;
    sum += answer.reward;
    ++count;
  }
  if (count == 0) return {};
  Metrics named{{"eval_reward", sum / count}};
  for (const auto& [name, value] : metrics) named.emplace_back("eval_" + name, value);
  return named;
}

OrderedJson GrpoObjective::progress() const { return walk_.progress(); }

void GrpoObjective::restore(const OrderedJson& progress) {
  walk_.restore(progress);
  used_ = 0;
}

}  // namespace onset
