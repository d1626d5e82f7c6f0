// The loss of group relative policy optimisation (Shao et al. 2402.03300) and its normalisers.
//
// A token t of completion i, with advantage A_i, contributes
//   rho = exp(lp - old)
//   l   = - min(rho A_i, clamp(rho, 1 - eps_low, 1 + eps_high) A_i) + beta k3
//   k3  = exp(ref - lp) - (ref - lp) - 1  (times rho, which is differentiated too, by option)
// where lp, old and ref are its log-probabilities under the policy, under the policy that sampled
// it, and under the reference. A window (the micro-batches, of all ranks, between two updates) with
// C completions, M micro-batches and counted tokens (those of completions that are not left out)
// has the loss
//   grpo      sum_i (1 / T_i) sum_t l / C               every completion weighs the same
//   bnpo      sum_m (sum l / tokens of m) / M           the token mean of each micro-batch
//   dapo      sum l / tokens of the window              every token weighs the same (2503.14476)
//   dr_grpo   sum l / (C max_completion_length)         a constant length (Liu et al. 2503.20783)
// A completion that is left out (cut off by the length limit, where the options say so, or without
// a reward) counts in no sum and in no number of tokens; C counts it all the same, as TRL does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "onset/train/loss_options.h"

namespace onset {

// C completions, packed one after the other: N = sum of their lengths.
struct GrpoCompletions {
  at::Tensor logps;                   // [N] under the policy, with their gradient
  at::Tensor old_logps;               // [N]
  at::Tensor reference_logps;         // [N]; undefined: no KL (needs beta 0)
  std::vector<std::int64_t> lengths;  // [C]
  std::vector<double> advantages;     // [C]
  std::vector<std::uint8_t> counted;  // [C]; 0: left out. Empty: all count
};

// What the losses divide by, of all micro-batches and ranks of the window.
struct GrpoWindow {
  double completions = 0;
  double tokens = 0;         // counted ones
  double micro_batches = 0;  // those with a counted token or not
};

// Sums and extremes over counted tokens; those of micro-batches and ranks are merged.
struct GrpoTotals {
  double tokens = 0;
  double loss = 0;          // the contribution to the window's loss
  double kl = 0;            // k3, never times rho; 0 without a reference
  double clipped_low = 0;   // tokens with rho < 1 - eps_low and A < 0
  double clipped_high = 0;  // tokens with rho > 1 + eps_high and A > 0
  double ratio_min = std::numeric_limits<double>::infinity();
  double ratio_max = -std::numeric_limits<double>::infinity();
  // The smallest distance of a ratio from a clip bound: below rounding, which side it falls on is
  // chance.
  double nearest_ratio_to_clip_bound = std::numeric_limits<double>::infinity();

  GrpoTotals& operator+=(const GrpoTotals& other);
  // Means over tokens; 0 where there are none.
  [[nodiscard]] double mean_kl() const;
  [[nodiscard]] double clip_fraction() const;
  // max |rho - 1|: at the first update after a rollout it says how far sampler and trainer differ.
  [[nodiscard]] double ratio_error() const;
};

struct GrpoLoss {
  at::Tensor loss;  // this micro-batch's contribution: backpropagated as it is, they add up
  GrpoTotals totals;
};

// The tokens that count: what GrpoWindow::tokens is the sum of.
[[nodiscard]] std::int64_t counted_tokens(const GrpoCompletions& completions);

// Throws usage errors as check() does, and where sizes do not fit together or the window is smaller
// than the micro-batch. Without a counted token the loss is 0 and can be backpropagated too.
[[nodiscard]] GrpoLoss grpo_loss(const GrpoCompletions& completions, const GrpoLossOptions& options,
                                 const GrpoWindow& window);

}  // namespace onset
