// Products of matrices that are read as they lie, compiled for AVX-512; called only where the CPU
// has it.
#include "onset/kernels/tile_kernels.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::tiles {
namespace {

void accumulate_columns(const PlainProduct& all, std::int64_t vectors) {
  const std::int64_t most = most_rows(static_cast<int>(vectors));
  const std::int64_t pieces = (all.count + most - 1) / most;
  const char* nothing = reinterpret_cast<const char*>(all.x);
  Prefetch none{nothing, nothing};
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const std::int64_t row = all.count * piece / pieces;
    const std::int64_t rows = all.count * (piece + 1) / pieces - row;
    const Strip strip{
        .weights = reinterpret_cast<const std::uint32_t*>(all.weights + row * all.weight_stride),
        .stride = all.weight_stride,
        .x = all.x,
        .x_stride = all.x_stride,
        .words = all.words,
        .sums = all.out + row * all.out_stride,
        .sums_stride = all.out_stride,
        .add = true};
    strip_kernel<TileType::f32>(vectors, rows)(strip, none);
  }
}

// Columns that fill no vector: by a copy with zeros behind them.
void accumulate_rest(const PlainProduct& all) {
  constexpr std::int64_t at_once = 64;
  alignas(line_bytes) float x[at_once * vector_lanes];
  alignas(line_bytes) float sums[at_once * vector_lanes];
  const __mmask16 some = first_lanes(all.columns);
  for (std::int64_t row = 0; row < all.count; row += at_once) {
    const std::int64_t rows = std::min(at_once, all.count - row);
    for (std::int64_t i = 0; i < rows; ++i) {
      _mm512_store_ps(sums + i * vector_lanes,
                      _mm512_maskz_loadu_ps(some, all.out + (row + i) * all.out_stride));
    }
    for (std::int64_t word = 0; word < all.words; word += at_once) {
      const std::int64_t words = std::min(at_once, all.words - word);
      for (std::int64_t i = 0; i < words; ++i) {
        _mm512_store_ps(x + i * vector_lanes,
                        _mm512_maskz_loadu_ps(some, all.x + (word + i) * all.x_stride));
      }
      PlainProduct part = all;
      part.weights = all.weights + row * all.weight_stride + word;
      part.count = rows;
      part.words = words;
      part.x = x;
      part.x_stride = vector_lanes;
      part.out = sums;
      part.out_stride = vector_lanes;
      accumulate_columns(part, 1);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      _mm512_mask_storeu_ps(all.out + (row + i) * all.out_stride, some,
                            _mm512_load_ps(sums + i * vector_lanes));
    }
  }
}

}  // namespace

void accumulate(const PlainProduct& all) {
  PlainProduct part = all;
  std::int64_t column = 0;
  const auto go_to = [&](std::int64_t at) {
    column = at;
    part.x = all.x + at;
    part.out = all.out + at;
  };
  while (all.columns - column >= vector_lanes) {
    const std::int64_t vectors = all.columns - column >= 2 * vector_lanes ? 2 : 1;
    accumulate_columns(part, vectors);
    go_to(column + vectors * vector_lanes);
  }
  part.columns = all.columns - column;
  if (part.columns > 0) accumulate_rest(part);
}

}  // namespace onset::tiles
