// Products with weights as they are stored: a matrix in mapped memory in any type is multiplied
// without ever being expanded as a whole. Panels of rows are converted into a small buffer that
// stays in the cache and multiplied at once by the BLAS in libtorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onset/checkpoint/dtype.h"

namespace onset {

// What FP8 weights are multiplied with, one number for each block of rows and columns; the last
// blocks may be cut short.
struct BlockScales {
  std::vector<float> values;  // row-major, ceil(columns / block_columns) to a row of blocks
  std::int64_t block_rows = 128;
  std::int64_t block_columns = 128;
};

// A weight [rows, columns], row-major; a view, the owner of the bytes outlives it.
struct StoredMatrix {
  std::span<const std::byte> bytes;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::shared_ptr<const BlockScales> scales = nullptr;  // none: the stored values are the weights
  std::int64_t scales_row = 0;  // the row of the scaled matrix that row 0 of this view is

  [[nodiscard]] std::int64_t row_bytes() const;
  [[nodiscard]] std::span<const std::byte> row_range(std::int64_t first, std::int64_t count) const;
  // Rows [first, first + count) as a view of their own.
  [[nodiscard]] StoredMatrix slice(std::int64_t first, std::int64_t count) const;
};

// Rows [first, first + count) as float32, count * columns values. Uses one thread.
void to_float32(const StoredMatrix& weight, std::int64_t first, std::int64_t count,
                std::span<float> values);

// What is added to a product [N, M]: left [N, r] times the transpose of right [M, r], float32 and
// contiguous. Undefined tensors: nothing.
struct LowRankAddend {
  at::Tensor left;
  at::Tensor right;
};

// The product with that added, in place.
[[nodiscard]] at::Tensor added_to(at::Tensor product, const LowRankAddend& addend);

// x [N, columns] float32 times the transpose: [N, rows] float32. Not differentiable.
[[nodiscard]] at::Tensor multiply(const at::Tensor& x, const StoredMatrix& weight,
                                  const LowRankAddend& addend = {});
// The same with a contiguous bfloat16 weight [rows, columns] and x rounded to bfloat16; sums in
// float32. Only where cpu_has_bf16_products(). Not differentiable where the weight's own products
// are faster than libtorch's.
[[nodiscard]] at::Tensor multiply_bf16(const at::Tensor& x, const at::Tensor& weight,
                                       const LowRankAddend& addend = {});

// The same from the weight as it is stored, each of its values rounded to bfloat16 where it is
// decoded. Only where one of these holds: there are so few rows of x that this is faster than
// reading a converted weight; or the weight can be rounded panel by panel, which spares a converted
// one and costs little where there are many rows. (A weight stored as bfloat16 needs neither.)
[[nodiscard]] bool multiplies_bf16_as_stored(std::int64_t rows, const StoredMatrix& weight);
[[nodiscard]] bool rounds_by_panels(const StoredMatrix& weight);
[[nodiscard]] at::Tensor multiply_bf16(const at::Tensor& x, const StoredMatrix& weight,
                                       const LowRankAddend& addend = {});

// All of it as a tensor [rows, columns] of kFloat, kDouble or kBFloat16 (each value converted to
// float32 first). A copy, converted on all threads.
[[nodiscard]] at::Tensor expand(const StoredMatrix& weight, at::ScalarType type);
// The same bytes as a tensor without a copy, where the stored type is `type` and the bytes are
// aligned for it; else undefined. Must not be written to.
[[nodiscard]] at::Tensor view_as_tensor(const StoredMatrix& weight, at::ScalarType type);

// Chosen rows as float32 [count, columns]; each id must be in [0, rows).
[[nodiscard]] at::Tensor gather_rows(const StoredMatrix& weight, std::span<const std::int64_t> ids);

// Whether the CPU multiplies bfloat16 at matrix speed (AVX-512 bf16). Elsewhere the products of
// bf16 compute are done in float32 on rounded inputs.
[[nodiscard]] bool cpu_has_bf16_products();
// Whether they are done by the kernels of tile_product.h. The matrix units of Intel's CPUs are
// libtorch's to use.
[[nodiscard]] bool multiplies_bf16_by_tiles();

}  // namespace onset
