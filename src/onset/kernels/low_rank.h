// The narrow products of a low-rank change of a weight, y += s (x A^T) B^T with A [r, in] and B
// [out, r], and of its gradients. float32, contiguous on the CPU; not differentiable.
#pragma once

#include <ATen/core/Tensor.h>

namespace onset {

// x A^T: [N, in] and [r, in] to [N, r].
[[nodiscard]] at::Tensor to_low_rank(const at::Tensor& x, const at::Tensor& down);
// y [N, out] += s h B^T for h [N, r].
void add_from_low_rank(const at::Tensor& h, const at::Tensor& up, double scale,
                       const at::Tensor& y);

// dh = s dy B: [N, out] to [N, r].
[[nodiscard]] at::Tensor low_rank_gradient(const at::Tensor& dy, const at::Tensor& up,
                                           double scale);
// dx [N, in] += dh A.
void add_input_gradient(const at::Tensor& dh, const at::Tensor& down, const at::Tensor& dx);
// narrow^T wide: [N, r] and [N, columns] to [r, columns].
[[nodiscard]] at::Tensor narrow_weight_gradient(const at::Tensor& narrow, const at::Tensor& wide);

}  // namespace onset
