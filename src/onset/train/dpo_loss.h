// Direct preference optimisation (Rafailov et al. 2305.18290) and its variants.
//
// With the log-probabilities of the policy and of the reference, each summed over a completion with
// its end token,
//   h_c = log pi(chosen) - log ref(chosen), h_r of the rejected one, d = h_c - h_r,
// the loss of a pair is
//   sigmoid   -(1 - e) log sigma(beta d) - e log sigma(-beta d)
//             e is the label smoothing: 0 gives equation 7 of the paper, above 0 conservative DPO
//             (Mitchell 2023)
//   robust    (-(1 - e) log sigma(beta d) + e log sigma(-beta d)) / (1 - 2 e)
//             unbiased when a share e of the labels is flipped (Chowdhury et al. 2403.00409)
//   ipo       (h_c / n_c - h_r / n_r - 1 / (2 beta))^2, n the completions' lengths in tokens
//             (Azar et al. 2310.12036, averaged over the length as TRL does)
//   ipo_sum   (d - 1 / (2 beta))^2, as equation 17 of that paper prints it
#pragma once

#include <ATen/core/Tensor.h>

#include "onset/train/loss_options.h"

namespace onset {

// P pairs of one micro-batch, each tensor [P].
struct DpoPairs {
  at::Tensor policy_chosen;  // with their gradient
  at::Tensor policy_rejected;
  at::Tensor reference_chosen;
  at::Tensor reference_rejected;
  at::Tensor chosen_lengths;  // in tokens, end token included; read by ipo alone
  at::Tensor rejected_lengths;
};

// Sums over pairs, so that those of micro-batches and ranks add up; a metric is a sum over pairs.
struct DpoTotals {
  double pairs = 0;
  double loss = 0;
  double rewards_chosen = 0;  // beta h_c
  double rewards_rejected = 0;
  double margins = 0;   // beta d
  double accurate = 0;  // pairs with beta h_c > beta h_r: none while the policy is the reference
  double logps_chosen = 0;
  double logps_rejected = 0;

  DpoTotals& operator+=(const DpoTotals& other);
};

struct DpoLoss {
  // Sum of the pairs' losses over window_pairs: backpropagated as it is, contributions of
  // micro-batches and ranks add up to the window's mean.
  at::Tensor loss;
  DpoTotals totals;
};

// window_pairs: the pairs of all micro-batches and ranks of the step. Throws usage errors as
// check() does, and where tensors differ in length or the window is smaller than the micro-batch.
[[nodiscard]] DpoLoss dpo_loss(const DpoPairs& pairs, const DpoLossOptions& options,
                               double window_pairs);

}  // namespace onset
