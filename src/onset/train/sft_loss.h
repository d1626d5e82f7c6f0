// The loss of supervised fine-tuning and of pre-training.
#pragma once

#include <ATen/core/Tensor.h>

namespace onset {

// Cross-entropy over the trained tokens of a whole window: the micro-batches, of all ranks, between
// two updates. A micro-batch contributes
//   L = - sum_t log p_t / window_tokens
// so that contributions and their gradients are added, over micro-batches and ranks, with no
// further factor. (Averaging the micro-batches' means instead weighs a token by how few others its
// micro-batch has.)
//   logps: [N], log p(x_t | x_<t) of the micro-batch's trained tokens, with their gradient; N may
//   be 0.
//   window_tokens: the trained tokens of the window.
// Throws a usage error unless window_tokens is above 0 and at least N.
[[nodiscard]] at::Tensor sft_loss(const at::Tensor& logps, double window_tokens);

}  // namespace onset
