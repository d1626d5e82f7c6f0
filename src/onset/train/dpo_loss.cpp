#include "onset/train/dpo_loss.h"

#include <ATen/ATen.h>

#include "onset/base/error.h"

namespace onset {
namespace {

void check_lengths(const DpoPairs& pairs, const DpoLossOptions& options, double window_pairs) {
  const auto count = pairs.policy_chosen.numel();
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.defined() && tensor.dim() == 1 && tensor.numel() == count;
  };
  bool all = fits(pairs.policy_chosen) && fits(pairs.policy_rejected) &&
             fits(pairs.reference_chosen) && fits(pairs.reference_rejected);
  if (options.type == DpoLossType::ipo) {
    all = all && fits(pairs.chosen_lengths) && fits(pairs.rejected_lengths);
  }
  if (!all) throw usage_error("the log-probabilities of the pairs differ in number");
  if (!(window_pairs > 0) || static_cast<double>(count) > window_pairs) {
    throw usage_error(
        str_cat("a window of ", window_pairs, " pairs cannot hold ", count, " of a micro-batch"));
  }
}

// [P]
at::Tensor pair_losses(const at::Tensor& chosen, const at::Tensor& rejected, const DpoPairs& pairs,
                       const DpoLossOptions& options) {
  const at::Tensor difference = chosen - rejected;
  const double e = options.label_smoothing;
  const double target = 1 / (2 * options.beta);
  switch (options.type) {
    case DpoLossType::sigmoid: {
      const at::Tensor right = at::log_sigmoid(difference * options.beta);
      if (e == 0) return -right;
      return right * (e - 1) - at::log_sigmoid(difference * -options.beta) * e;
    }
    case DpoLossType::robust: {
      const at::Tensor right = at::log_sigmoid(difference * options.beta);
      const at::Tensor wrong = at::log_sigmoid(difference * -options.beta);
      return (right * (e - 1) + wrong * e) / (1 - 2 * e);
    }
    case DpoLossType::ipo:
      return (chosen / pairs.chosen_lengths - rejected / pairs.rejected_lengths - target).square();
    case DpoLossType::ipo_sum:
      break;
  }
  return (difference - target).square();
}

double total(const at::Tensor& values) { return values.detach().sum(at::kDouble).item<double>(); }

}  // namespace

DpoTotals& DpoTotals::operator+=(const DpoTotals& other) {
  pairs += other.pairs;
  loss += other.loss;
  rewards_chosen += other.rewards_chosen;
  rewards_rejected += other.rewards_rejected;
  margins += other.margins;
  accurate += other.accurate;
  logps_chosen += other.logps_chosen;
  logps_rejected += other.logps_rejected;
  return *this;
}

DpoLoss dpo_loss(const DpoPairs& pairs, const DpoLossOptions& options, double window_pairs) {
  check(options);
  check_lengths(pairs, options, window_pairs);
  const at::Tensor chosen = pairs.policy_chosen - pairs.reference_chosen;
  const at::Tensor rejected = pairs.policy_rejected - pairs.reference_rejected;
  const at::Tensor losses = pair_losses(chosen, rejected, pairs, options);
  const at::Tensor chosen_reward = chosen.detach() * options.beta;
  const at::Tensor rejected_reward = rejected.detach() * options.beta;
  return {.loss = losses.sum() / window_pairs,
          .totals = {.pairs = static_cast<double>(losses.numel()),
                     .loss = total(losses),
                     .rewards_chosen = total(chosen_reward),
                     .rewards_rejected = total(rejected_reward),
                     .margins = total(chosen_reward - rejected_reward),
                     .accurate = total(chosen_reward > rejected_reward),
                     .logps_chosen = total(pairs.policy_chosen),
                     .logps_rejected = total(pairs.policy_rejected)}};
}

}  // namespace onset
