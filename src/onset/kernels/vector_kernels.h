// Element-wise kernels compiled for AVX-512; to be called only where has_tiles(TileType::f32).
// Torch-free.
#pragma once

#include <cstdint>

namespace onset::vectors {

// A row of numbers whose soft maximum is taken.
struct SoftRow {
  float largest = 0;
  double sum = 0;  // of exp(number - largest)
};

// Makes each number of the row exp(number - largest). A NaN stays one, and makes the sum one.
[[nodiscard]] SoftRow soften_row(float* row, std::int64_t count);
void scale_row(float* row, std::int64_t count, float factor);

// The numbers of silu(gate) * up: float, or the bits of bfloat16.
template <typename Number>
struct GatedArrays {
  const Number* gate = nullptr;
  const Number* up = nullptr;
};
using RoundedArrays = GatedArrays<std::uint16_t>;

// Its gradients by both, with dy its own.
struct GatedGradientArrays {
  const float* dy = nullptr;
  float* dgate = nullptr;
  float* dup = nullptr;
};

// Of the elements [begin, end).
void silu_gated(const RoundedArrays& arrays, float* product, std::int64_t begin, std::int64_t end);
// By silu'(g) = s (1 + g (1 - s)) with s = sigmoid(g).
void silu_gated_gradients(const GatedArrays<float>& arrays, const GatedGradientArrays& gradients,
                          std::int64_t begin, std::int64_t end);
void silu_gated_gradients(const RoundedArrays& arrays, const GatedGradientArrays& gradients,
                          std::int64_t begin, std::int64_t end);

// A row of RMSNorm's backward pass, of `width` numbers; gain_sums, where there are any, are added
// to.
struct NormRow {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* gain = nullptr;
  float* dx = nullptr;
  double* gain_sums = nullptr;
  std::int64_t width = 0;
  double eps = 0;
};

void norm_row_gradient(const NormRow& row);

}  // namespace onset::vectors
