// What tile_product calls of the file compiled for AVX-512. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace onset::tiles {

struct Source {
  const float* x = nullptr;  // [rows, columns]
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t lanes = 0;
};

void pack_f32(const Source& source, float* to);
void pack_bf16(const Source& source, float* to);

struct Product {
  const float* x = nullptr;  // a packed block [words, lanes]
  std::int64_t x_rows = 0;
  std::int64_t lanes = 0;
  const void* weights = nullptr;
  std::int64_t count = 0;
  std::int64_t words = 0;
  std::span<const std::byte> next = {};
  float* sums = nullptr;  // [count, lanes], scratch
};

void multiply_f32(const Product& product, float* out, std::int64_t out_stride);
void multiply_bf16(const Product& product, float* out, std::int64_t out_stride);

}  // namespace onset::tiles
