// The kernels of tile_product.h, compiled for AVX-512 (F, BW, VL, DQ, BF16); called only where the
// CPU has them.
#include "onset/kernels/tile_kernels.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::tiles {
namespace {

// Words [first, first + 16) of a row; those past the end are zero.
inline __m512 f32_words(const float* row, std::int64_t first, std::int64_t words) {
  return _mm512_maskz_loadu_ps(first_lanes(words - first), row + first);
}

// A word is two columns.
inline __m512 bf16_words(const float* row, std::int64_t first, std::int64_t words) {
  const float* at = row + 2 * first;
  const std::int64_t left = 2 * (words - first);
  const __m512 low = _mm512_maskz_loadu_ps(first_lanes(left), at);
  const __m512 high = _mm512_maskz_loadu_ps(first_lanes(left - 16), at + 16);
  return _mm512_castsi512_ps(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

template <typename Words>
void pack(const Source& source, std::int64_t words, const Words& words_of, float* to) {
  for (std::int64_t lane = 0; lane < source.lanes; lane += vector_lanes) {
    const std::int64_t rows = std::clamp<std::int64_t>(source.rows - lane, 0, vector_lanes);
    for (std::int64_t first = 0; first < words; first += vector_lanes) {
      Block block;
      for (__m512& row : block) row = _mm512_setzero_ps();
      for (std::int64_t i = 0; i < rows; ++i) {
        block[i] = words_of(source.x + (lane + i) * source.columns, first, words);
      }
      transpose(block);
      const std::int64_t count = std::min<std::int64_t>(vector_lanes, words - first);
      for (std::int64_t i = 0; i < count; ++i) {
        _mm512_storeu_ps(to + (first + i) * source.lanes + lane, block[i]);
      }
    }
  }
}

template <TileType type>
Sums add_up(const Product& product, const Output& output) {
  const char* ahead = reinterpret_cast<const char*>(
      product.next.empty() ? product.weights : static_cast<const void*>(product.next.data()));
  const Sums sums{.weights = static_cast<const std::uint32_t*>(product.weights),
                  .stride = product.words,
                  .count = product.count,
                  .x = product.x,
                  .words = product.words,
                  .vectors = product.lanes / vector_lanes,
                  .sums = product.sums};
  add_up<type>(sums, {ahead, ahead + product.next.size()}, output);
  if (product.more_words > 0) {
    Sums more = sums;
    more.weights = reinterpret_cast<const std::uint32_t*>(product.more_weights);
    more.stride = product.more_words;
    more.x = product.more_x;
    more.words = product.more_words;
    more.add = true;
    add_up<TileType::f32>(more, {ahead, ahead});
  }
  return sums;
}

template <TileType type>
void multiply(const Product& product, float* out, std::int64_t out_stride) {
  const Output output{.out = out, .stride = out_stride, .rows = product.x_rows};
  write_out(add_up<type>(product, output), output);
}

template <TileType type>
void multiply_turned(const Product& product, float* out, std::int64_t out_stride, bool add) {
  const Sums sums = add_up<type>(
      product, {.out = out, .stride = out_stride, .rows = product.x_rows, .turned = true});
  for (std::int64_t r = 0; r < sums.count; ++r) {
    for (std::int64_t lane = 0; lane < product.x_rows; lane += vector_lanes) {
      const __mmask16 some = first_lanes(product.x_rows - lane);
      float* at = out + r * out_stride + lane;
      __m512 sum = _mm512_loadu_ps(sums.sums + r * product.lanes + lane);
      if (add) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(some, at));
      _mm512_mask_storeu_ps(at, some, sum);
    }
  }
}

}  // namespace

void pack_f32(const Source& source, float* to) { pack(source, source.columns, f32_words, to); }

void pack_bf16(const Source& source, float* to) {
  pack(source, source.columns / 2, bf16_words, to);
}

void multiply_f32(const Product& product, float* out, std::int64_t out_stride) {
  multiply<TileType::f32>(product, out, out_stride);
}

void multiply_bf16(const Product& product, float* out, std::int64_t out_stride) {
  multiply<TileType::bf16>(product, out, out_stride);
}

void multiply_turned_f32(const Product& product, float* out, std::int64_t out_stride, bool add) {
  multiply_turned<TileType::f32>(product, out, out_stride, add);
}

void multiply_turned_bf16(const Product& product, float* out, std::int64_t out_stride, bool add) {
  multiply_turned<TileType::bf16>(product, out, out_stride, add);
}

}  // namespace onset::tiles
