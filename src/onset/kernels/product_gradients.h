// The products of a linear layer's backward pass, by the same kernels as its forward pass. For
// y = x W^T with W [out, in], x [N, in] and the gradient dy [N, out].
#pragma once

#include <ATen/core/Tensor.h>

#include "onset/kernels/stored_matrix.h"

namespace onset {

enum class ProductType {
  f32,   // inputs and sums in float32
  bf16,  // inputs rounded to bfloat16, sums in float32
};

// dx = dy W, [N, in] float32.
[[nodiscard]] at::Tensor input_gradient(const at::Tensor& dy, const StoredMatrix& weight,
                                        ProductType type);
// dW = dy^T x, [out, in] float32.
[[nodiscard]] at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& x,
                                         ProductType type);

// x [N, K] times the transpose of a contiguous float32 or bfloat16 matrix [M, K]: [N, M] float32.
[[nodiscard]] at::Tensor multiply_as(const at::Tensor& x, const at::Tensor& matrix,
                                     ProductType type);

// W^T [columns, rows] as float32, converted and turned on all threads.
[[nodiscard]] at::Tensor transposed(const StoredMatrix& weight);

// A contiguous float32 or bfloat16 matrix as one that is stored; the tensor must outlive it.
[[nodiscard]] StoredMatrix stored_view(const at::Tensor& matrix);

}  // namespace onset
