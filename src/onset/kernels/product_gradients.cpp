#include "onset/kernels/product_gradients.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "onset/kernels/panels.h"

namespace onset {
namespace {

// Rows that are packed at a time: even, for bfloat16 takes them in pairs.
constexpr std::int64_t packed_rows = 32;

// Words of long rows that are multiplied with all columns before the next are looked at: a panel of
// them stays in the cache, and the columns are read once for many rows. Whole chains of sums.
constexpr std::int64_t words_at_once = 4 * tile_depth;

// Rows that are turned at a time: a run of them is written side by side.
constexpr std::int64_t turned_rows = 128;
constexpr std::int64_t turned_columns = 16;

// W^T as float32, converted and turned on all threads.
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

// x [N, K] times the transpose of a contiguous float32 or bfloat16 matrix [M, K].
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

bool has_tiles(ProductType type) {
  return type == ProductType::bf16 ? multiplies_bf16_by_tiles() : has_tiles(TileType::f32);
}

TileType tile_type(ProductType type) {
  return type == ProductType::bf16 ? TileType::bf16 : TileType::f32;
}

// Rows [first, first + count); converted into `buffer` where they are not stored as numbers that
// the tiles read.
MatrixPart part_of(const StoredMatrix& matrix, std::int64_t first, std::int64_t count,
                   std::vector<float>& buffer) {
  MatrixPart part{.stride = matrix.columns, .rows = count, .columns = matrix.columns};
  const auto bytes = matrix.row_range(first, count);
  const bool plain = matrix.dtype == DType::f32 || matrix.dtype == DType::bf16;
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0;
  part.is_bf16 = matrix.dtype == DType::bf16;
  part.values = bytes.data();
  if (plain && aligned && matrix.scales == nullptr) return part;
  buffer.resize(static_cast<std::size_t>(count * matrix.columns));
  to_float32(matrix, first, count, buffer);
  part.is_bf16 = false;
  part.values = buffer.data();
  return part;
}

// The transpose of a matrix as packed rows.
TileRows packed_columns(const StoredMatrix& matrix, TileType type) {
  TileRows columns(type, matrix.columns, matrix.rows);
  const std::int64_t parts = (matrix.rows + packed_rows - 1) / packed_rows;
  at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> buffer;
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int64_t first = p * packed_rows;
      const std::int64_t count = std::min(packed_rows, matrix.rows - first);
      columns.pack_columns(part_of(matrix, first, count, buffer), first);
    }
  });
  return columns;
}

// dy [N, K] times a matrix [K, M] given by its columns.
at::Tensor multiply_by_columns(const at::Tensor& dy, const TileRows& columns,
                               const LowRankShare& share) {
  const std::int64_t width = columns.rows();
  std::optional<TileRows> down;
  if (share.dh.defined()) down.emplace(packed_columns(stored_view(share.down), TileType::f32));
  const std::int64_t k = dy.size(1);
  at::Tensor out = at::empty({dy.size(0), width}, dy.options());
  const float* from = dy.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const std::int64_t words = columns.words();
  const bool bf16 = columns.type() == TileType::bf16;
  for_each_panel(
      dy.size(0), std::min(words, words_at_once) * 4, [&](std::int64_t first, std::int64_t count) {
        thread_local std::vector<float> part;
        for (TileWords own; own.first < words; own.first += words_at_once) {
          own.count = std::min(words_at_once, words - own.first);
          const std::int64_t column = bf16 ? 2 * own.first : own.first;
          const MatrixPart rows{.values = from + first * k + column,
                                .stride = k,
                                .rows = count,
                                .columns = std::min(k - column, bf16 ? 2 * own.count : own.count)};
          TileWeights weights{.rows = rows.values, .count = count};
          if (bf16 || own.count < k) {
            part.resize(static_cast<std::size_t>(count * own.count));
            take_for_tiles(columns.type(), rows, own.count, part.data());
            weights.rows = part.data();
          }
          if (down && own.first == 0) {
            weights.more = {.x = &*down,
                            .rows = share.dh.const_data_ptr<float>() + first * down->words()};
          }
          multiply_tiles_turned(columns, weights, to + first * width, width, own.first > 0, own);
        }
      });
  return out;
}

void weight_gradient_by_tiles(const at::Tensor& dy, const at::Tensor& x, TileType type,
                              const at::Tensor& out, bool add) {
  const TileRows columns = packed_columns(stored_view(x), type);
  const float* from = dy.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const std::int64_t width = x.size(1);
  const std::int64_t words = columns.words();
  for_each_panel(dy.size(1), words * 4, [&](std::int64_t first, std::int64_t count) {
    thread_local std::vector<float> turned;
    turned.resize(static_cast<std::size_t>(count * words));
    turn_for_tiles(
        type, {.values = from + first, .stride = dy.size(1), .rows = dy.size(0), .columns = count},
        words, turned.data());
    multiply_tiles_turned(columns, {.rows = turned.data(), .count = count}, to + first * width,
                          width, add);
  });
}

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

InputGradients::InputGradients(const StoredMatrix& weight, ProductType type) : type_(type) {
  if (has_tiles(type)) {
    columns_ = std::make_shared<const TileRows>(packed_columns(weight, tile_type(type)));
    return;
  }
  turned_ = transposed(weight);
  if (type == ProductType::bf16 && cpu_has_bf16_products()) turned_ = turned_.to(at::kBFloat16);
}

at::Tensor InputGradients::operator()(const at::Tensor& dy, const LowRankShare& share) const {
  if (columns_) return multiply_by_columns(dy.contiguous(), *columns_, share);
  at::Tensor dx = multiply_as(dy.contiguous(), turned_, type_);
  if (share.dh.defined()) dx.addmm_(share.dh, share.down);
  return dx;
}

at::Tensor input_gradient(const at::Tensor& dy, const StoredMatrix& weight, ProductType type,
                          const LowRankShare& share) {
  return InputGradients(weight, type)(dy, share);
}

at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& x, ProductType type) {
  if (has_tiles(type)) {
    at::Tensor out = at::empty({dy.size(1), x.size(1)}, dy.options());
    weight_gradient_by_tiles(dy.contiguous(), x.contiguous(), tile_type(type), out, /*add=*/false);
    return out;
  }
  const at::Tensor dy_t = transposed(stored_view(dy.contiguous()));
  const at::Tensor x_t = transposed(stored_view(x.contiguous()));
  return multiply_as(dy_t, x_t, type);
}

void add_weight_gradient(const at::Tensor& dy, const at::Tensor& x, ProductType type,
                         const at::Tensor& sum) {
  if (!has_tiles(type)) {
    sum.add_(weight_gradient(dy, x, type));
    return;
  }
  weight_gradient_by_tiles(dy.contiguous(), x.contiguous(), tile_type(type), sum, /*add=*/true);
}

}  // namespace onset
