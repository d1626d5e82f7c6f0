// The kernel of tile_attention.h, compiled for AVX-512; called only where the CPU has it.
//
// The scores lie as the products leave them, [keys, lanes]: a column of the soft maximum is a lane,
// and the weights are at once the packed rows of the second product.
#include <limits>

#include "onset/kernels/tile_kernels.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::tiles {
namespace {

constexpr std::int64_t vectors = 2;
constexpr std::int64_t lanes = vectors * vector_lanes;

// exp(x) for x <= 0, 0 below -87.3. By 2^n times the Taylor polynomial of degree 7 on
// |r| <= ln 2 / 2, where the next term is below 6e-9 of the result.
inline __m512 exp_of(__m512 x) {
  const __m512 log2_e = _mm512_set1_ps(1.44269504F);
  // ln 2 in two parts, the first with few digits.
  const __m512 ln2_high = _mm512_set1_ps(0.693359375F);
  const __m512 ln2_low = _mm512_set1_ps(-2.12194440e-4F);
  const __mmask16 some = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.3F), _CMP_GE_OQ);
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, log2_e), _MM_FROUND_TO_NEAREST_INT);
  __m512 r = _mm512_fnmadd_ps(n, ln2_high, x);
  r = _mm512_fnmadd_ps(n, ln2_low, r);
  __m512 sum = _mm512_set1_ps(1.0F / 5040);
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0F / 720));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0F / 120));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0F / 24));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0F / 6));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(0.5F));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0F));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1.0F));
  return _mm512_maskz_scalef_ps(some, sum, n);
}

// Of one vector of lanes: scores to exp(score - largest), 0 where the lane does not see the key.
// Returns the sums. NaN scores make the lane NaN.
__m512 soften(const Attention& attention, std::int64_t vector) {
  float* column = attention.scores + vector * vector_lanes;
  const __m512i first = _mm512_loadu_si512(attention.first_key + vector * vector_lanes);
  const __m512i last = _mm512_loadu_si512(attention.last_key + vector * vector_lanes);
  const auto seen = [&](std::int64_t key) {
    const __m512i at = _mm512_set1_epi32(static_cast<int>(key));
    return static_cast<__mmask16>(_mm512_cmple_epi32_mask(first, at) &
                                  _mm512_cmple_epi32_mask(at, last));
  };
  __m512 largest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (std::int64_t key = 0; key < attention.key_count; ++key) {
    const __m512 score = _mm512_loadu_ps(column + key * lanes);
    largest = _mm512_mask_max_ps(largest, seen(key), largest, score);
  }
  __m512 total = _mm512_setzero_ps();
  for (std::int64_t begin = 0; begin < attention.key_count; begin += tile_depth) {
    const std::int64_t end = std::min(begin + tile_depth, attention.key_count);
    __m512 sum = _mm512_setzero_ps();
    for (std::int64_t key = begin; key < end; ++key) {
      const __m512 score = _mm512_loadu_ps(column + key * lanes);
      const __mmask16 nan = _mm512_cmp_ps_mask(score, score, _CMP_UNORD_Q);
      __m512 weight = exp_of(_mm512_sub_ps(score, largest));
      weight = _mm512_mask_mov_ps(weight, nan, score);
      weight = _mm512_maskz_mov_ps(seen(key), weight);
      _mm512_storeu_ps(column + key * lanes, weight);
      sum = _mm512_add_ps(sum, weight);
    }
    total = _mm512_add_ps(total, sum);
  }
  return total;
}

void pack_queries(const Attention& attention) {
  pack_f32({.x = attention.rows, .rows = lanes, .columns = attention.dim, .lanes = lanes},
           attention.packed);
}

}  // namespace

void attend(const Attention& attention) {
  pack_queries(attention);
  const auto words_of = [](const float* values) {
    return reinterpret_cast<const std::uint32_t*>(values);
  };
  const auto nothing_ahead = [](const float* values) {
    const char* at = reinterpret_cast<const char*>(values);
    return Prefetch{at, at};
  };
  add_up<TileType::f32>({.weights = words_of(attention.keys),
                         .stride = attention.dim,
                         .count = attention.key_count,
                         .x = attention.packed,
                         .words = attention.dim,
                         .vectors = vectors,
                         .sums = attention.scores},
                        nothing_ahead(attention.keys));
  __m512 inverse[vectors];  // NOLINT(modernize-avoid-c-arrays)
  for (std::int64_t v = 0; v < vectors; ++v) {
    inverse[v] = _mm512_div_ps(_mm512_set1_ps(1.0F), soften(attention, v));
  }
  const Sums out{.weights = words_of(attention.values),
                 .stride = attention.value_stride,
                 .count = attention.value_dim,
                 .x = attention.scores,
                 .words = attention.key_count,
                 .vectors = vectors,
                 .sums = attention.sums};
  add_up<TileType::f32>(out, nothing_ahead(attention.values));
  for (std::int64_t d = 0; d < attention.value_dim; ++d) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      float* at = attention.sums + d * lanes + v * vector_lanes;
      _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), inverse[v]));
    }
  }
  write_out(out, {.out = attention.rows, .stride = attention.value_dim, .rows = lanes});
}

}  // namespace onset::tiles
