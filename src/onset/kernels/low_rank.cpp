#include "onset/kernels/low_rank.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "onset/kernels/panels.h"
#include "onset/kernels/tile_product.h"

namespace onset {
namespace {

// Rows whose products are added before they join the sum: a short chain, and few enough to stay in
// the first-level cache.
constexpr std::int64_t rows_at_once = 32;
constexpr std::int64_t fewest_columns = 64;

bool has_narrow_tiles() { return has_tiles(TileType::f32); }

// out [N, M] (+)= rows [N, K] times packed columns.
void multiply_rows(const at::Tensor& rows, const TileRows& columns, const at::Tensor& out,
                   bool add) {
  const std::int64_t k = rows.size(1);
  const std::int64_t width = out.size(1);
  const float* from = rows.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for_each_panel(rows.size(0), std::max(k, width) * 4, [&](std::int64_t first, std::int64_t count) {
    multiply_tiles_turned(columns, {.rows = from + first * k, .count = count}, to + first * width,
                          width, add);
  });
}

TileRows packed(const at::Tensor& matrix) {
  TileRows rows(TileType::f32, matrix.size(0), matrix.size(1));
  for (std::int64_t b = 0; b < rows.blocks(); ++b) rows.pack(matrix.const_data_ptr<float>(), b);
  return rows;
}

// Its transpose.
TileRows packed_columns(const at::Tensor& matrix) {
  const std::int64_t columns = matrix.size(1);
  TileRows rows(TileType::f32, columns, matrix.size(0));
  rows.pack_columns({.values = matrix.const_data_ptr<float>(),
                     .stride = columns,
                     .rows = matrix.size(0),
                     .columns = columns},
                    0);
  return rows;
}

}  // namespace

at::Tensor to_low_rank(const at::Tensor& x, const at::Tensor& down) {
  if (!has_narrow_tiles()) return at::linear(x, down);
  at::Tensor h = at::empty({x.size(0), down.size(0)}, x.options());
  multiply_rows(x.contiguous(), packed(down.contiguous()), h, /*add=*/false);
  return h;
}

void add_from_low_rank(const at::Tensor& h, const at::Tensor& up, double scale,
                       const at::Tensor& y) {
  const at::Tensor scaled = h.mul(scale);
  if (!has_narrow_tiles()) {
    y.addmm_(scaled, up.t());
    return;
  }
  multiply_rows(scaled, packed(up.contiguous()), y, /*add=*/true);
}

at::Tensor low_rank_gradient(const at::Tensor& dy, const at::Tensor& up, double scale) {
  if (!has_narrow_tiles()) return at::mm(dy, up).mul_(scale);
  at::Tensor dh = at::empty({dy.size(0), up.size(1)}, dy.options());
  multiply_rows(dy.contiguous(), packed_columns(up.contiguous()), dh, /*add=*/false);
  return dh.mul_(scale);
}

void add_input_gradient(const at::Tensor& dh, const at::Tensor& down, const at::Tensor& dx) {
  if (!has_narrow_tiles()) {
    dx.addmm_(dh, down);
    return;
  }
  multiply_rows(dh, packed_columns(down.contiguous()), dx, /*add=*/true);
}

at::Tensor narrow_weight_gradient(const at::Tensor& narrow, const at::Tensor& wide) {
  if (!has_narrow_tiles()) return at::mm(narrow.t(), wide);
  const at::Tensor turned = narrow.t().contiguous();  // [r, N]
  const at::Tensor x = wide.contiguous();
  const std::int64_t rows = x.size(0);
  const std::int64_t columns = x.size(1);
  at::Tensor out = at::zeros({turned.size(0), columns}, x.options());
  const float* weights = turned.const_data_ptr<float>();
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const std::int64_t parts = (columns + fewest_columns - 1) / fewest_columns;
  at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * fewest_columns;
    const std::int64_t width = std::min(end * fewest_columns, columns) - first;
    for (std::int64_t row = 0; row < rows; row += rows_at_once) {
      add_product({.weights = weights + row,
                   .weight_stride = rows,
                   .count = turned.size(0),
                   .x = from + row * columns + first,
                   .x_stride = columns,
                   .words = std::min(rows_at_once, rows - row),
                   .columns = width,
                   .out = to + first,
                   .out_stride = columns});
    }
  });
  return out;
}

}  // namespace onset
