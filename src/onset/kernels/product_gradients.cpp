#include "onset/kernels/product_gradients.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace onset {
namespace {

// Rows that are turned at a time: a run of them is written side by side.
constexpr std::int64_t turned_rows = 128;
constexpr std::int64_t turned_columns = 16;

}  // namespace

StoredMatrix stored_view(const at::Tensor& matrix) {
  const bool known = matrix.scalar_type() == at::kFloat || matrix.scalar_type() == at::kBFloat16;
  if (!known || !matrix.is_contiguous() || matrix.dim() != 2) {
    throw std::logic_error("stored_view: of a tensor that is no contiguous matrix");
  }
  return {.bytes = {static_cast<const std::byte*>(matrix.const_data_ptr()), matrix.nbytes()},
          .dtype = matrix.scalar_type() == at::kFloat ? DType::f32 : DType::bf16,
          .rows = matrix.size(0),
          .columns = matrix.size(1)};
}

at::Tensor transposed(const StoredMatrix& weight) {
  at::Tensor out = at::empty({weight.columns, weight.rows}, at::TensorOptions().dtype(at::kFloat));
  float* to = out.mutable_data_ptr<float>();
  const std::int64_t panels = (weight.rows + turned_rows - 1) / turned_rows;
  at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> panel;
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t first = p * turned_rows;
      const std::int64_t count = std::min(turned_rows, weight.rows - first);
      panel.resize(static_cast<std::size_t>(count * weight.columns));
      to_float32(weight, first, count, panel);
      for (std::int64_t block = 0; block < weight.columns; block += turned_columns) {
        const std::int64_t last = std::min(block + turned_columns, weight.columns);
        for (std::int64_t c = block; c < last; ++c) {
          float* row = to + c * weight.rows + first;
          const float* from = panel.data() + c;
          for (std::int64_t r = 0; r < count; ++r) row[r] = from[r * weight.columns];
        }
      }
    }
  });
  return out;
}

at::Tensor multiply_as(const at::Tensor& x, const at::Tensor& matrix, ProductType type) {
  if (type == ProductType::f32) return multiply(x, stored_view(matrix));
  if (!cpu_has_bf16_products()) {
    const auto rounded = [](const at::Tensor& t) { return t.to(at::kBFloat16).to(at::kFloat); };
    return multiply(rounded(x), stored_view(rounded(matrix)));
  }
  // The kernels take pairs of columns.
  const bool odd = matrix.size(1) % 2 != 0;
  const auto even = [&](const at::Tensor& t) { return odd ? at::constant_pad_nd(t, {0, 1}) : t; };
  return multiply_bf16(even(x), even(matrix.to(at::kBFloat16)));
}

at::Tensor input_gradient(const at::Tensor& dy, const StoredMatrix& weight, ProductType type) {
  return multiply_as(dy.contiguous(), transposed(weight), type);
}

at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& x, ProductType type) {
  const at::Tensor dy_t = transposed(stored_view(dy.contiguous()));
  const at::Tensor x_t = transposed(stored_view(x.contiguous()));
  return multiply_as(dy_t, x_t, type);
}

}  // namespace onset
