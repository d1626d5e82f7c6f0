#include "onset/kernels/plain_product.h"

#include <ATen/ATen.h>

namespace onset {

at::Tensor plain_product(const at::Tensor& x, const at::Tensor& matrix, ProductType type) {
  if (type == ProductType::f32) return at::linear(x, matrix);
  // The product of bfloat16 matrices is bfloat16 unless it is asked for otherwise.
  return at::mm(x.to(at::kBFloat16), matrix.to(at::kBFloat16).t(), at::kFloat);
}

}  // namespace onset
