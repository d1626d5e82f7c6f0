// Products of a few rows of x, as decoding makes them, with weights in the form they are stored in.
// Torch-free.
//
// With few rows a product takes as long as its weights take to be read and decoded. So the blocks
// of a quantised weight are decoded in registers, each once for all rows of x, and nothing that is
// not a sum goes back to memory. The lanes of a vector are sixteen columns (those of tile_product.h
// are rows of x); a lane adds float32 in chains of at most `tile_depth` terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "onset/checkpoint/dtype.h"

namespace onset {

// Rows of x above which tiles are faster.
inline constexpr std::int64_t most_few_rows = 12;
// Weight rows whose sums are reduced together, a vector's worth: a thread's share should be a
// multiple.
inline constexpr std::int64_t few_rows_panel = 16;

// What the decoded weights are multiplied as: float32 numbers, or each rounded to bfloat16 first
// (to nearest even).
enum class FewRowsType { f32, bf16 };

// Whether this CPU has kernels for weights stored as `dtype`: AVX-512 (F, BW, VL, DQ), for bf16
// also AVX-512 BF16; float32, float16, bfloat16 and the formats that GGUF files mostly use.
[[nodiscard]] bool has_few_rows(DType dtype, FewRowsType type);

struct FewRows {
  const float* x = nullptr;  // [n, columns]; for bf16 already rounded
  std::int64_t n = 0;        // at most most_few_rows
  std::int64_t columns = 0;  // a multiple of the format's block
  DType dtype = DType::f32;
  std::span<const std::byte> weights;  // [count, columns], row-major
  std::int64_t count = 0;
};

// out[i, r] = sum_c x[i, c] weights[r, c], a row of `out` out_stride values behind the one before
// it. The weights are bit for bit those of to_float32 (dtype.h). Runs on the calling thread;
// several may call it at a time. has_few_rows() must hold.
void multiply_few_rows(const FewRows& product, FewRowsType type, float* out,
                       std::int64_t out_stride);

}  // namespace onset
