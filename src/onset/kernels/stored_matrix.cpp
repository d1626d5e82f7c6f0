#include "onset/kernels/stored_matrix.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "onset/base/cpu.h"
#include "onset/kernels/few_rows.h"
#include "onset/kernels/panels.h"
#include "onset/kernels/tile_product.h"

namespace onset {
namespace {

// The BLAS inside libtorch_cpu, MKL (Fortran interface, column-major).
extern "C" void sgemm_(const char* transa, const char* transb, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

// Rows of x below which the lanes of a tile are too empty.
constexpr std::int64_t fewest_tile_rows = 6;
// Rows of x above which reading a converted bfloat16 weight is faster than decoding blocks.
constexpr std::int64_t most_bf16_as_stored = 8;
// Weights of a product of few rows that are worth a thread of their own.
constexpr std::int64_t fewest_weights = 48 * 1024;

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

// Every panel of rows on all threads, as float32: visit(rows, first, count).
template <typename Visit>
void for_each_float_panel(const StoredMatrix& weight, const Visit& visit) {
  const std::int64_t row_bytes = weight.columns * static_cast<std::int64_t>(sizeof(float));
  for_each_panel(weight.rows, row_bytes, [&](std::int64_t first, std::int64_t count) {
    thread_local std::vector<float> buffer;
    visit(float_rows(weight, first, count, buffer), first, count);
  });
}

TileRows packed_rows(TileType type, const at::Tensor& x) {
  TileRows rows(type, x.size(0), x.size(1));
  const float* from = x.const_data_ptr<float>();
  at::parallel_for(0, rows.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) rows.pack(from, b);
  });
  return rows;
}

// For the tiles.
class PackedAddend {
 public:
  explicit PackedAddend(const LowRankAddend& addend) : right_(addend.right) {
    if (addend.left.defined()) left_.emplace(packed_rows(TileType::f32, addend.left));
  }
  // Of weight rows from `first` on.
  [[nodiscard]] TileAddend from(std::int64_t first) const {
    if (!left_) return {};
    return {.x = &*left_, .rows = right_.const_data_ptr<float>() + first * right_.size(1)};
  }

 private:
  std::optional<TileRows> left_;
  at::Tensor right_;
};

// Stored bytes of what follows rows [.., first), as much as a panel of `count` rows.
std::span<const std::byte> bytes_behind(const StoredMatrix& weight, std::int64_t first,
                                        std::int64_t count) {
  return weight.row_range(first, std::min(count, weight.rows - first));
}

// In the BLAS's column-major view out^T (count x n, leading dimension out_stride) = rows
// (transposed) times x^T.
void multiply_by_blas(const at::Tensor& x, const float* rows, std::int64_t count, float* out,
                      std::int64_t out_stride) {
  const int m = static_cast<int>(count);
  const int n = static_cast<int>(x.size(0));
  const int k = static_cast<int>(x.size(1));
  const int ldc = static_cast<int>(out_stride);
  const float one = 1.0F;
  const float zero = 0.0F;
  sgemm_("T", "N", &m, &n, &k, &one, rows, &k, x.const_data_ptr<float>(), &k, &zero, out, &ldc);
}

bool multiplies_few_rows(std::int64_t n, const StoredMatrix& weight, FewRowsType type) {
  return n <= most_few_rows && weight.scales == nullptr && has_few_rows(weight.dtype, type);
}

// x contiguous; each thread takes some of the weight's rows.
at::Tensor multiply_few_rows(const at::Tensor& x, const StoredMatrix& weight, FewRowsType type) {
  const std::int64_t n = x.size(0);
  at::Tensor out = at::empty({n, weight.rows}, x.options());
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const std::int64_t steps = (weight.rows + few_rows_panel - 1) / few_rows_panel;
  const std::int64_t grain =
      std::max<std::int64_t>(1, fewest_weights / (few_rows_panel * weight.columns * n));
  at::parallel_for(0, steps, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * few_rows_panel;
    const std::int64_t count = std::min(end * few_rows_panel, weight.rows) - first;
    multiply_few_rows({.x = from,
                       .n = n,
                       .columns = weight.columns,
                       .dtype = weight.dtype,
                       .weights = weight.row_range(first, count),
                       .count = count},
                      type, to + first, weight.rows);
  });
  return out;
}

// x contiguous; each panel of the weight is rounded to bfloat16 before it is multiplied.
at::Tensor multiply_rounded(const at::Tensor& x, const StoredMatrix& weight,
                            const LowRankAddend& addend) {
  at::Tensor out = at::empty({x.size(0), weight.rows}, x.options());
  if (x.size(0) == 0) return out;
  const TileRows packed = packed_rows(TileType::bf16, x);
  const PackedAddend more(addend);
  float* to = out.mutable_data_ptr<float>();
  for_each_float_panel(weight, [&](const float* rows, std::int64_t first, std::int64_t count) {
    thread_local std::vector<float> rounded;
    rounded.resize(static_cast<std::size_t>(count * packed.words()));
    take_for_tiles(
        TileType::bf16,
        {.values = rows, .stride = weight.columns, .rows = count, .columns = weight.columns},
        packed.words(), rounded.data());
    multiply_tiles(packed,
                   {.rows = rounded.data(),
                    .count = count,
                    .next = bytes_behind(weight, first + count, count),
                    .more = more.from(first)},
                   to + first, weight.rows);
  });
  return out;
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

at::Tensor added_to(at::Tensor product, const LowRankAddend& addend) {
  if (addend.left.defined()) product.addmm_(addend.left, addend.right.t());
  return product;
}

at::Tensor multiply(const at::Tensor& x, const StoredMatrix& weight, const LowRankAddend& addend) {
  const at::Tensor input = x.contiguous();
  const std::int64_t n = input.size(0);
  if (n > 0 && multiplies_few_rows(n, weight, FewRowsType::f32)) {
    return added_to(multiply_few_rows(input, weight, FewRowsType::f32), addend);
  }
  at::Tensor out = at::empty({n, weight.rows}, input.options());
  if (n == 0) return out;
  float* to = out.mutable_data_ptr<float>();
  if (n < fewest_tile_rows || !has_tiles(TileType::f32)) {
    for_each_float_panel(weight, [&](const float* rows, std::int64_t first, std::int64_t count) {
      multiply_by_blas(input, rows, count, to + first, weight.rows);
    });
    return added_to(out, addend);
  }
  const TileRows packed = packed_rows(TileType::f32, input);
  const PackedAddend more(addend);
  for_each_float_panel(weight, [&](const float* rows, std::int64_t first, std::int64_t count) {
    multiply_tiles(packed,
                   {.rows = rows,
                    .count = count,
                    .next = bytes_behind(weight, first + count, count),
                    .more = more.from(first)},
                   to + first, weight.rows);
  });
  return out;
}

at::Tensor multiply_bf16(const at::Tensor& x, const at::Tensor& weight,
                         const LowRankAddend& addend) {
  const std::int64_t columns = weight.size(1);
  if (x.size(0) < fewest_tile_rows || columns % 2 != 0 || !multiplies_bf16_by_tiles()) {
    return added_to(at::linear(x.to(at::kBFloat16), weight).to(at::kFloat), addend);
  }
  const TileRows packed = packed_rows(TileType::bf16, x.contiguous());
  const PackedAddend more(addend);
  at::Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
  const auto* from = static_cast<const std::byte*>(weight.const_data_ptr());
  const std::int64_t row_bytes = columns * 2;
  float* to = out.mutable_data_ptr<float>();
  for_each_panel(weight.size(0), row_bytes, [&](std::int64_t first, std::int64_t count) {
    const std::byte* rows = from + first * row_bytes;
    const std::int64_t left = std::min(count, weight.size(0) - first - count);
    const std::span next(rows + count * row_bytes, static_cast<std::size_t>(left * row_bytes));
    multiply_tiles(packed, {.rows = rows, .count = count, .next = next, .more = more.from(first)},
                   to + first, weight.size(0));
  });
  return out;
}

bool multiplies_bf16_as_stored(std::int64_t rows, const StoredMatrix& weight) {
  return rows > 0 && rows <= most_bf16_as_stored && is_quantised(weight.dtype) &&
         multiplies_bf16_by_tiles() && multiplies_few_rows(rows, weight, FewRowsType::bf16);
}

bool rounds_by_panels(const StoredMatrix& weight) {
  return weight.columns % 2 == 0 && weight.dtype != DType::bf16 && multiplies_bf16_by_tiles();
}

at::Tensor multiply_bf16(const at::Tensor& x, const StoredMatrix& weight,
                         const LowRankAddend& addend) {
  const at::Tensor input = x.contiguous();
  if (!multiplies_bf16_as_stored(x.size(0), weight)) return multiply_rounded(input, weight, addend);
  at::Tensor rounded = at::empty_like(input);
  const float* from = input.const_data_ptr<float>();
  std::transform(from, from + input.numel(), rounded.mutable_data_ptr<float>(),
                 [](float value) { return static_cast<float>(at::BFloat16(value)); });
  return added_to(multiply_few_rows(rounded, weight, FewRowsType::bf16), addend);
}

at::Tensor expand(const StoredMatrix& weight, at::ScalarType type) {
  at::Tensor out = at::empty({weight.rows, weight.columns}, at::TensorOptions().dtype(type));
  for_each_float_panel(weight, [&](const float* from, std::int64_t first, std::int64_t count) {
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

bool multiplies_bf16_by_tiles() {
  static const bool answer = has_tiles(TileType::bf16) && __builtin_cpu_is("intel") == 0;
  return answer;
}

bool cpu_has_bf16_products() { return cpu_has_bf16(); }

}  // namespace onset
