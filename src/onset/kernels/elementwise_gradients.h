// Backward passes of the element-wise parts of a block, each in one pass over memory. Float32,
// contiguous, without autograd; the sums do not depend on the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace onset {

struct NormGradients {
  at::Tensor x;     // like x
  at::Tensor gain;  // [D]
};

// Of y = x * gain / sqrt(mean(x^2) + eps), x [.., D]: with r the reciprocal root, x_hat = x r and
// g = dy gain, dx = r (g - x_hat mean(g x_hat)) and dgain = sum dy x_hat.
[[nodiscard]] NormGradients rms_norm_gradients(const at::Tensor& dy, const at::Tensor& x,
                                               const at::Tensor& gain, double eps);

// silu(gate) * up in float32, and its gradients by gate and up. Both are float32, or (what a
// backward pass kept) both bfloat16.
[[nodiscard]] at::Tensor fused_silu_gated(const at::Tensor& gate, const at::Tensor& up);
struct GatedGradients {
  at::Tensor gate;
  at::Tensor up;
};
[[nodiscard]] GatedGradients silu_gated_gradients(const at::Tensor& dy, const at::Tensor& gate,
                                                  const at::Tensor& up);

}  // namespace onset
