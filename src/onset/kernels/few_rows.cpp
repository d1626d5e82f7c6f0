#include "onset/kernels/few_rows.h"

#include "onset/kernels/few_rows_kernels.h"
#include "onset/kernels/tile_product.h"

namespace onset {
namespace {

few_rows::Kernel kernel_of(DType dtype, FewRowsType type, std::int64_t n) {
  return type == FewRowsType::bf16 ? few_rows::kernel_bf16(dtype, n)
                                   : few_rows::kernel_f32(dtype, n);
}

}  // namespace

bool has_few_rows(DType dtype, FewRowsType type) {
  const bool runs = has_tiles(type == FewRowsType::bf16 ? TileType::bf16 : TileType::f32);
  return runs && kernel_of(dtype, type, 1) != nullptr;
}

void multiply_few_rows(const FewRows& product, FewRowsType type, float* out,
                       std::int64_t out_stride) {
  if (product.count == 0) return;
  // Parts of about the same size.
  const std::int64_t parts = (product.n + few_rows::most_rows - 1) / few_rows::most_rows;
  const auto row_bytes = static_cast<std::int64_t>(product.weights.size()) / product.count;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = product.n * part / parts;
    const std::int64_t n = product.n * (part + 1) / parts - first;
    kernel_of(product.dtype, type, n)({.x = product.x + first * product.columns,
                                       .columns = product.columns,
                                       .weights = product.weights.data(),
                                       .row_bytes = row_bytes,
                                       .count = product.count,
                                       .out = out + first * out_stride,
                                       .out_stride = out_stride});
  }
}

}  // namespace onset
