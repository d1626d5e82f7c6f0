// The element-wise parts of a block in one pass over memory each, for float32 without gradients.
// The model room uses plain tensor operations where these do not apply.
#pragma once

#include <ATen/core/Tensor.h>

namespace onset {

// Whether the kernels below may be used on the tensor: float32, contiguous, on the CPU, and nothing
// to differentiate.
[[nodiscard]] bool elementwise_applies(const at::Tensor& tensor);

// x [.., D] * gain [D] / sqrt(mean(x^2) + eps); the mean of squares in float64.
[[nodiscard]] at::Tensor fused_rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

// Turns the leading 2 * half dims of each head: x [N, heads, K], cos and sin [N, half].
[[nodiscard]] at::Tensor fused_rotate(const at::Tensor& x, const at::Tensor& cos,
                                      const at::Tensor& sin);

}  // namespace onset
