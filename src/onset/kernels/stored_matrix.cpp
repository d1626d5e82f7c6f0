#include "onset/kernels/stored_matrix.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "onset/kernels/dense_product.h"

namespace onset {
namespace {

// A panel should stay in the second-level cache while it is multiplied.
constexpr std::int64_t panel_bytes = 512 * 1024;
constexpr std::int64_t min_panel_rows = 16;
constexpr std::int64_t max_panel_rows = 128;

std::int64_t panel_rows(std::int64_t columns) {
  const std::int64_t fitting = panel_bytes / (columns * static_cast<std::int64_t>(sizeof(float)));
  return std::clamp(fitting / 16 * 16, min_panel_rows, max_panel_rows);
}

// Float32 rows [first, first + count): the stored bytes themselves where they are aligned float32,
// else converted into `buffer`.
const float* float_rows(const StoredMatrix& weight, std::int64_t first, std::int64_t count,
                        std::vector<float>& buffer) {
  const auto bytes = weight.row_range(first, count);
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0;
  if (weight.dtype == DType::f32 && aligned) return reinterpret_cast<const float*>(bytes.data());
  buffer.resize(static_cast<std::size_t>(count * weight.columns));
  to_float32(weight, first, count, buffer);
  return buffer.data();
}

// Calls visit(rows, first, count) for every panel, its rows as float32, on all threads.
template <typename Visit>
void for_each_panel(const StoredMatrix& weight, const Visit& visit) {
  const std::int64_t rows = panel_rows(weight.columns);
  const std::int64_t panels = (weight.rows + rows - 1) / rows;
  at::parallel_for(0, panels, 1, [&](std::int64_t begin, std::int64_t end) {
    thread_local std::vector<float> buffer;
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t first = panel * rows;
      const std::int64_t count = std::min(rows, weight.rows - first);
      visit(float_rows(weight, first, count, buffer), first, count);
    }
  });
}

at::Tensor aligned_view(const StoredMatrix& weight, at::ScalarType type) {
  const auto address = reinterpret_cast<std::uintptr_t>(weight.bytes.data());
  if (address % c10::elementSize(type) != 0) return {};
  return at::from_blob(const_cast<std::byte*>(weight.bytes.data()), {weight.rows, weight.columns},
                       at::TensorOptions().dtype(type));
}

}  // namespace

std::int64_t StoredMatrix::row_bytes() const {
  const DTypeInfo& info = dtype_info(dtype);
  return columns / info.block_values * info.block_bytes;
}

std::span<const std::byte> StoredMatrix::row_range(std::int64_t first, std::int64_t count) const {
  const auto size = static_cast<std::size_t>(row_bytes());
  return bytes.subspan(static_cast<std::size_t>(first) * size,
                       static_cast<std::size_t>(count) * size);
}

StoredMatrix StoredMatrix::slice(std::int64_t first, std::int64_t count) const {
  return {row_range(first, count), dtype, count, columns, scales, scales_row + first};
}

void to_float32(const StoredMatrix& weight, std::int64_t first, std::int64_t count,
                std::span<float> values) {
  to_float32(weight.dtype, weight.row_range(first, count), values);
  if (weight.scales == nullptr) return;
  const BlockScales& scales = *weight.scales;
  const std::int64_t block_columns = scales.block_columns;
  const std::int64_t across = (weight.columns + block_columns - 1) / block_columns;
  float* value = values.data();
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t block_row = (weight.scales_row + first + row) / scales.block_rows;
    const float* scale = scales.values.data() + block_row * across;
    for (std::int64_t begin = 0; begin < weight.columns; begin += block_columns, ++scale) {
      const std::int64_t end = std::min(begin + block_columns, weight.columns);
      for (std::int64_t i = begin; i < end; ++i) *value++ *= *scale;
    }
  }
}

at::Tensor multiply(const at::Tensor& x, const StoredMatrix& weight) {
  const at::Tensor input = x.contiguous();
  const std::int64_t n = input.size(0);
  at::Tensor out = at::empty({n, weight.rows}, input.options());
  if (n == 0) return out;
  const float* from = input.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for_each_panel(weight, [&](const float* rows, std::int64_t first, std::int64_t count) {
    multiply_panel({.x = from,
                    .n = n,
                    .rows = rows,
                    .count = count,
                    .columns = weight.columns,
                    .row_stride = weight.columns},
                   to + first, weight.rows);
  });
  return out;
}

at::Tensor expand(const StoredMatrix& weight, at::ScalarType type) {
  at::Tensor out = at::empty({weight.rows, weight.columns}, at::TensorOptions().dtype(type));
  for_each_panel(weight, [&](const float* from, std::int64_t first, std::int64_t count) {
    const std::int64_t values = count * weight.columns;
    const std::int64_t at = first * weight.columns;
    if (type == at::kFloat) {
      std::copy_n(from, values, out.mutable_data_ptr<float>() + at);
    } else if (type == at::kDouble) {
      std::copy_n(from, values, out.mutable_data_ptr<double>() + at);
    } else {
      at::BFloat16* to = out.mutable_data_ptr<at::BFloat16>() + at;
      std::transform(from, from + values, to, [](float v) { return at::BFloat16(v); });
    }
  });
  return out;
}

at::Tensor view_as_tensor(const StoredMatrix& weight, at::ScalarType type) {
  const bool same = (type == at::kFloat && weight.dtype == DType::f32) ||
                    (type == at::kBFloat16 && weight.dtype == DType::bf16);
  return same ? aligned_view(weight, type) : at::Tensor();
}

at::Tensor gather_rows(const StoredMatrix& weight, std::span<const std::int64_t> ids) {
  at::Tensor out = at::empty({static_cast<std::int64_t>(ids.size()), weight.columns},
                             at::TensorOptions().dtype(at::kFloat));
  float* to = out.mutable_data_ptr<float>();
  for (const std::int64_t id : ids) {
    to_float32(weight, id, 1, std::span(to, static_cast<std::size_t>(weight.columns)));
    to += weight.columns;
  }
  return out;
}

bool cpu_has_bf16_products() { return __builtin_cpu_supports("avx512bf16") != 0; }

}  // namespace onset
