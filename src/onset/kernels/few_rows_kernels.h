// What few_rows.cpp calls of the files compiled for AVX-512. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>

#include "onset/checkpoint/dtype.h"

namespace onset::few_rows {

struct Product {
  const float* x = nullptr;  // [n, columns]
  std::int64_t columns = 0;
  const std::byte* weights = nullptr;  // [count, row_bytes]
  std::int64_t row_bytes = 0;
  std::int64_t count = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
};

using Kernel = void (*)(const Product&);

// Rows of x that a kernel exists for.
inline constexpr std::int64_t most_rows = 8;

// For weights of that type and n in [1, most_rows]; nullptr where there is none. The second is for
// weights that are rounded to bfloat16.
[[nodiscard]] Kernel kernel_f32(DType dtype, std::int64_t n);
[[nodiscard]] Kernel kernel_bf16(DType dtype, std::int64_t n);

}  // namespace onset::few_rows
