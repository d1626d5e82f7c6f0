// The products of a linear layer's backward pass, by the same kernels as its forward pass. For
// y = x W^T with W [out, in], x [N, in] and the gradient dy [N, out].
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "onset/kernels/stored_matrix.h"
#include "onset/kernels/tile_product.h"

namespace onset {

enum class ProductType {
  f32,   // inputs and sums in float32
  bf16,  // inputs rounded to bfloat16, sums in float32
};

// What a low-rank change B A of W adds to dx: dh A, with dh = s dy B [N, r] and A [r, in], float32
// and contiguous. Undefined tensors: nothing.
struct LowRankShare {
  at::Tensor dh;
  at::Tensor down;
};

// dx = dy W of several dy [N, out]: W in the order that the product reads it in.
class InputGradients {
 public:
  // Takes what it needs of the weight; needs no gradients itself.
  InputGradients(const StoredMatrix& weight, ProductType type);
  // [N, in] float32.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& dy, const LowRankShare& share = {}) const;

 private:
  ProductType type_;
  std::shared_ptr<const TileRows> columns_;  // by tiles
  at::Tensor turned_;                        // else: W^T
};

// dx = dy W, [N, in] float32, and what `share` adds.
[[nodiscard]] at::Tensor input_gradient(const at::Tensor& dy, const StoredMatrix& weight,
                                        ProductType type, const LowRankShare& share = {});
// dW = dy^T x, [out, in] float32. For bf16 x may be bfloat16 already.
[[nodiscard]] at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& x,
                                         ProductType type);
// The same added to `sum` [out, in], contiguous.
void add_weight_gradient(const at::Tensor& dy, const at::Tensor& x, ProductType type,
                         const at::Tensor& sum);

// A contiguous float32 or bfloat16 matrix as one that is stored; the tensor must outlive it.
[[nodiscard]] StoredMatrix stored_view(const at::Tensor& matrix);

}  // namespace onset
