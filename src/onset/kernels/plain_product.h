// Products by libtorch's own operations, for tensors that suits_own_kernels() refuses.
#pragma once

#include <ATen/core/Tensor.h>

#include "onset/kernels/product_gradients.h"

namespace onset {

// x [N, K] times the transpose of a matrix [M, K]: [N, M], in float32 with sums in float32; for
// ProductType::f32 also float64 in float64. Views are taken as they are.
[[nodiscard]] at::Tensor plain_product(const at::Tensor& x, const at::Tensor& matrix,
                                       ProductType type);

}  // namespace onset
