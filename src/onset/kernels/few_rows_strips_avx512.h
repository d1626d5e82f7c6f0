// The loops of few_rows over any format of few_rows_formats_avx512.h, for the files compiled for
// AVX-512 alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "onset/kernels/few_rows.h"
#include "onset/kernels/few_rows_formats_avx512.h"
#include "onset/kernels/few_rows_kernels.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::few_rows {

namespace {

// Weight rows that are read side by side: their sums are to fit the registers.
constexpr int rows_at_once(int n) { return n <= 6 ? 4 : 3; }

// Of one panel: the vectors of sums of all rows of x and of the weights, and of those past the end.
template <int n>
struct Sums {
  __m512 all[n][few_rows_panel + rows_at_once(n) - 1];  // NOLINT(modernize-avoid-c-arrays)
};

// How far ahead of the products weights are brought to the cache: memory's latency at its full
// rate.
inline constexpr std::int64_t bytes_ahead = 8192;

// The lines of so many bytes; they may lie past the end of the weights.
template <std::int64_t bytes>
inline void bring_nearer(const U8* at) {
#pragma GCC unroll 4
  for (std::int64_t line = 0; line < bytes; line += tiles::line_bytes) {
    _mm_prefetch(reinterpret_cast<const char*>(at) + line, _MM_HINT_T0);
  }
}

struct Columns {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Adds what columns [begin, end) of the rows at `weights` give to sums of rows row, row + 1, ..
template <typename Format, int n, int rows>
inline void add_columns(const Product& product, const U8* const* weights, const Columns& columns,
                        int row, Sums<n>& sums) {
  __m512 sum[rows][n];  // NOLINT(modernize-avoid-c-arrays): registers
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) sum[r][i] = _mm512_setzero_ps();
  }
  std::int64_t offset = columns.begin / Format::values * Format::bytes;
  std::int64_t column = columns.begin;
  for (; column + Format::values <= columns.end; column += Format::values) {
    typename Format::Block block[rows];  // NOLINT(modernize-avoid-c-arrays)
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      block[r] = Format::open(weights[r] + offset);
      bring_nearer<Format::bytes>(weights[r] + offset + bytes_ahead);
    }
    for (int group = 0; group < Format::groups; ++group) {
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        __m512 w[Format::vectors];  // NOLINT(modernize-avoid-c-arrays)
        Format::decode(block[r], group, w);
#pragma GCC unroll 4
        for (int v = 0; v < Format::vectors; ++v) {
          const float* x = product.x + column + Format::column(group, v);
#pragma GCC unroll 8
          for (int i = 0; i < n; ++i) {
            sum[r][i] = _mm512_fmadd_ps(w[v], _mm512_loadu_ps(x + i * product.columns), sum[r][i]);
          }
        }
      }
    }
    offset += Format::bytes;
  }
  if constexpr (Format::values == tiles::vector_lanes) {
    if (column < columns.end) {
      const __mmask16 left = tiles::first_lanes(columns.end - column);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        U8 last[Format::bytes] = {};  // NOLINT(modernize-avoid-c-arrays)
        std::memcpy(
            last, weights[r] + offset,
            static_cast<std::size_t>((columns.end - column) * Format::bytes / Format::values));
        __m512 w[1];  // NOLINT(modernize-avoid-c-arrays)
        Format::decode(last, 0, w);
#pragma GCC unroll 8
        for (int i = 0; i < n; ++i) {
          const __m512 x = _mm512_maskz_loadu_ps(left, product.x + i * product.columns + column);
          sum[r][i] = _mm512_fmadd_ps(w[0], x, sum[r][i]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      __m512& at = sums.all[i][row + r];
      at = columns.begin == 0 ? sum[r][i] : _mm512_add_ps(at, sum[r][i]);
    }
  }
}

// The sum of the lanes of sixteen vectors, one a lane.
inline __m512 lane_sums(const __m512* vectors) {
  tiles::Block block;
  for (int i = 0; i < 16; ++i) block[i] = vectors[i];
  tiles::transpose(block);
  for (int step = 8; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) block[i] = _mm512_add_ps(block[i], block[i + step]);
  }
  return block[0];
}

template <typename Format, int n>
void multiply(const Product& product) {
  constexpr int rows = rows_at_once(n);
  constexpr std::int64_t chain = tile_depth * tiles::vector_lanes;
  for (std::int64_t first = 0; first < product.count; first += few_rows_panel) {
    const std::int64_t count = std::min(few_rows_panel, product.count - first);
    Sums<n> sums;
    if (count < few_rows_panel) sums = {};
    for (int row = 0; row < count; row += rows) {
      const U8* weights[rows];  // NOLINT(modernize-avoid-c-arrays)
      for (int r = 0; r < rows; ++r) {
        // Past the end the last row again, whose sums are not kept.
        const std::int64_t at = first + std::min<std::int64_t>(row + r, count - 1);
        weights[r] = reinterpret_cast<const U8*>(product.weights) + at * product.row_bytes;
      }
      for (std::int64_t begin = 0; begin < product.columns; begin += chain) {
        add_columns<Format, n, rows>(product, weights,
                                     {begin, std::min(begin + chain, product.columns)}, row, sums);
      }
    }
    for (int i = 0; i < n; ++i) {
      float* out = product.out + i * product.out_stride + first;
      _mm512_mask_storeu_ps(out, tiles::first_lanes(count), lane_sums(sums.all[i]));
    }
  }
}

template <typename Format>
Kernel kernel(std::int64_t n) {
  constexpr Kernel kernels[] = {// NOLINT(modernize-avoid-c-arrays)
                                &multiply<Format, 1>, &multiply<Format, 2>, &multiply<Format, 3>,
                                &multiply<Format, 4>, &multiply<Format, 5>, &multiply<Format, 6>,
                                &multiply<Format, 7>, &multiply<Format, 8>};
  return kernels[n - 1];
}

template <bool bf16>
Kernel kernel(DType dtype, std::int64_t n) {
  switch (dtype) {
    case DType::f32:
      return kernel<F32<bf16>>(n);
    case DType::f16:
      return kernel<F16<bf16>>(n);
    case DType::bf16:
      return kernel<BF16>(n);
    case DType::q4_0:
      return kernel<Q40<bf16>>(n);
    case DType::q4_1:
      return kernel<Q41<bf16>>(n);
    case DType::q5_0:
      return kernel<Q50<bf16>>(n);
    case DType::q5_1:
      return kernel<Q51<bf16>>(n);
    case DType::q8_0:
      return kernel<Q80<bf16>>(n);
    case DType::q4_k:
      return kernel<Q4K<bf16>>(n);
    case DType::q5_k:
      return kernel<Q5K<bf16>>(n);
    case DType::q6_k:
      return kernel<Q6K<bf16>>(n);
    case DType::iq4_nl:
      return kernel<Iq4Nl<bf16>>(n);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace onset::few_rows
