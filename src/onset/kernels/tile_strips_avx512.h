// The inner loops of the tiles, for the files compiled for AVX-512 alone. Templates of the library
// that other files share may not be instantiated in them: the linker could keep that copy for all.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "onset/kernels/tile_product.h"

namespace onset::tiles {

inline constexpr std::int64_t vector_lanes = 16;
inline constexpr std::int64_t line_bytes = 64;

namespace {

// Weight rows at a time: the sums, the lanes and a weight are to fit the 32 registers.
constexpr int most_rows(int vectors) { return vectors == 3 ? 9 : 14; }

using Block = __m512[vector_lanes];  // 16 x 16 words

// Makes its rows its columns.
inline void transpose(Block& r) {
  Block t;
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  const auto lo = [](__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0x44); };
  const auto hi = [](__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0xee); };
  for (int i = 0; i < 16; i += 4) {
    r[i] = lo(t[i], t[i + 2]);
    r[i + 1] = hi(t[i], t[i + 2]);
    r[i + 2] = lo(t[i + 1], t[i + 3]);
    r[i + 3] = hi(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, 16)) - 1U);
}

// Where the next weights are brought nearer from, a line at each step until the end.
struct Prefetch {
  const char* at = nullptr;
  const char* end = nullptr;
};

template <TileType type>
inline __m512 add_product(__m512 sum, const std::uint32_t* weight, __m512 x) {
  int word = 0;
  std::memcpy(&word, weight, sizeof word);  // may lie at an odd address
  const __m512i words = _mm512_set1_epi32(word);
  if constexpr (type == TileType::bf16) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(words));
  } else {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(words), x, sum);
  }
}

struct Strip {
  const std::uint32_t* weights = nullptr;
  std::int64_t stride = 0;  // words from a row to the next
  const float* x = nullptr;
  std::int64_t x_stride = 0;  // values from a word of the lanes to the next
  std::int64_t words = 0;
  float* sums = nullptr;  // 16 * vectors of each row
  std::int64_t sums_stride = 0;
  bool add = false;  // to what `sums` holds
};

// sums[r, lane] of `rows` weight rows and 16 * vectors lanes, all in registers.
template <TileType type, int vectors, int rows>
void multiply_strip(const Strip& strip, Prefetch& prefetch) {
  __m512 sums[rows][vectors];  // NOLINT(modernize-avoid-c-arrays): registers
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = _mm512_setzero_ps();
    }
  }
  const std::uint32_t* weight = strip.weights;
  const float* x = strip.x;
  const char* ahead = prefetch.at;
  for (std::int64_t k = 0; k < strip.words; ++k) {
    __m512 lanes[vectors];  // NOLINT(modernize-avoid-c-arrays)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) lanes[v] = _mm512_loadu_ps(x + v * vector_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 3
      for (int v = 0; v < vectors; ++v) {
        sums[r][v] = add_product<type>(sums[r][v], weight + r * strip.stride, lanes[v]);
      }
    }
    x += strip.x_stride;
    ++weight;
    _mm_prefetch(ahead, _MM_HINT_T1);
    ahead += ahead < prefetch.end ? line_bytes : 0;
  }
  prefetch.at = ahead;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) {
      float* at = strip.sums + r * strip.sums_stride + v * vector_lanes;
      _mm512_storeu_ps(at, strip.add ? _mm512_add_ps(_mm512_loadu_ps(at), sums[r][v]) : sums[r][v]);
    }
  }
}

using StripKernel = void (*)(const Strip&, Prefetch&);

template <TileType type, int vectors, std::size_t... rows>
constexpr StripKernel strip_kernel(std::int64_t count, std::index_sequence<rows...>) {
  StripKernel found = nullptr;
  ((count == rows + 1 ? found = &multiply_strip<type, vectors, rows + 1> : found), ...);
  return found;
}

template <TileType type, int vectors>
StripKernel strip_kernel(std::int64_t count) {
  return strip_kernel<type, vectors>(count, std::make_index_sequence<most_rows(vectors)>());
}

template <TileType type>
StripKernel strip_kernel(std::int64_t vectors, std::int64_t count) {
  if (vectors == 1) return strip_kernel<type, 1>(count);
  return vectors == 2 ? strip_kernel<type, 2>(count) : strip_kernel<type, 3>(count);
}

// Weight rows and a block of x to sums [count, lanes].
struct Sums {
  const std::uint32_t* weights = nullptr;
  std::int64_t stride = 0;  // words from a row to the next
  std::int64_t count = 0;   // rows
  const float* x = nullptr;
  std::int64_t words = 0;
  std::int64_t vectors = 0;  // of lanes
  float* sums = nullptr;
  bool add = false;  // to what they hold
};

// Where the sums will be written, row by row of x.
struct Output {
  float* out = nullptr;
  std::int64_t stride = 0;  // values from a row to the next
  std::int64_t rows = 0;    // the leading lanes
  bool turned = false;      // a row of it is a weight row
};

// Brings the lines nearer that weight rows [row, row + rows) will be written to: writing to a line
// that is not in the cache waits for its old content.
inline void expect_writes(const Output& output, std::int64_t row, std::int64_t rows) {
  constexpr std::int64_t line_values = line_bytes / static_cast<std::int64_t>(sizeof(float));
  if (output.turned) {
    for (std::int64_t r = row; r < row + rows; ++r) {
      const float* at = output.out + r * output.stride;
      for (std::int64_t lane = 0; lane < output.rows; lane += line_values) {
        _mm_prefetch(reinterpret_cast<const char*>(at + lane), _MM_HINT_T0);
      }
    }
    return;
  }
  for (std::int64_t lane = 0; lane < output.rows; ++lane) {
    const float* at = output.out + lane * output.stride + row;
    for (std::int64_t i = 0; i < rows; i += line_values) {
      _mm_prefetch(reinterpret_cast<const char*>(at + i), _MM_HINT_T0);
    }
  }
}

template <TileType type>
void add_up(const Sums& all, Prefetch prefetch, const Output& output = {}) {
  const std::int64_t lanes = all.vectors * vector_lanes;
  const std::int64_t most = most_rows(static_cast<int>(all.vectors));
  const std::int64_t pieces = (all.count + most - 1) / most;
  for (std::int64_t first = 0; first < all.words; first += tile_depth) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t row = all.count * piece / pieces;
      const std::int64_t rows = all.count * (piece + 1) / pieces - row;
      const Strip strip{.weights = all.weights + row * all.stride + first,
                        .stride = all.stride,
                        .x = all.x + first * lanes,
                        .x_stride = lanes,
                        .words = std::min(tile_depth, all.words - first),
                        .sums = all.sums + row * lanes,
                        .sums_stride = lanes,
                        .add = all.add || first > 0};
      if (first == 0) expect_writes(output, row, rows);
      strip_kernel<type>(all.vectors, rows)(strip, prefetch);
    }
  }
}

// out[lane, r] from sums[r, lane], for count rows r and the leading lanes.
inline void write_out(const Sums& all, const Output& output) {
  const std::int64_t lanes = all.vectors * vector_lanes;
  for (std::int64_t first = 0; first < all.count; first += vector_lanes) {
    const std::int64_t rows = std::min<std::int64_t>(vector_lanes, all.count - first);
    for (std::int64_t lane = 0; lane < output.rows; lane += vector_lanes) {
      Block block;
      for (__m512& row : block) row = _mm512_setzero_ps();
      for (std::int64_t i = 0; i < rows; ++i) {
        block[i] = _mm512_loadu_ps(all.sums + (first + i) * lanes + lane);
      }
      transpose(block);
      const std::int64_t left = std::min<std::int64_t>(vector_lanes, output.rows - lane);
      for (std::int64_t i = 0; i < left; ++i) {
        float* at = output.out + (lane + i) * output.stride + first;
        _mm512_mask_storeu_ps(at, first_lanes(rows), block[i]);
      }
    }
  }
}

}  // namespace
}  // namespace onset::tiles
