// exp and the soft maximum of scores, for the files compiled for AVX-512 alone.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "onset/kernels/tile_product.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::tiles {
namespace {

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

// Scores of keys [key_count, lanes]; a lane sees the keys from first to last, at least one.
struct Scores {
  float* scores = nullptr;
  std::int64_t lanes = 0;
  std::int64_t key_count = 0;
  const std::int32_t* first_key = nullptr;
  const std::int32_t* last_key = nullptr;
};

// Of one vector of lanes: scores to exp(score - largest), 0 where the lane does not see the key.
// Returns the sums. NaN scores make the lane NaN.
inline __m512 soften(const Scores& scores, std::int64_t vector) {
  float* column = scores.scores + vector * vector_lanes;
  const __m512i first = _mm512_loadu_si512(scores.first_key + vector * vector_lanes);
  const __m512i last = _mm512_loadu_si512(scores.last_key + vector * vector_lanes);
  const auto seen = [&](std::int64_t key) {
    const __m512i at = _mm512_set1_epi32(static_cast<int>(key));
    return static_cast<__mmask16>(_mm512_cmple_epi32_mask(first, at) &
                                  _mm512_cmple_epi32_mask(at, last));
  };
  __m512 largest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (std::int64_t key = 0; key < scores.key_count; ++key) {
    const __m512 score = _mm512_loadu_ps(column + key * scores.lanes);
    largest = _mm512_mask_max_ps(largest, seen(key), largest, score);
  }
  __m512 total = _mm512_setzero_ps();
  for (std::int64_t begin = 0; begin < scores.key_count; begin += tile_depth) {
    const std::int64_t end = std::min(begin + tile_depth, scores.key_count);
    __m512 sum = _mm512_setzero_ps();
    for (std::int64_t key = begin; key < end; ++key) {
      const __m512 score = _mm512_loadu_ps(column + key * scores.lanes);
      const __mmask16 nan = _mm512_cmp_ps_mask(score, score, _CMP_UNORD_Q);
      __m512 weight = exp_of(_mm512_sub_ps(score, largest));
      weight = _mm512_mask_mov_ps(weight, nan, score);
      weight = _mm512_maskz_mov_ps(seen(key), weight);
      _mm512_storeu_ps(column + key * scores.lanes, weight);
      sum = _mm512_add_ps(sum, weight);
    }
    total = _mm512_add_ps(total, sum);
  }
  return total;
}

}  // namespace
}  // namespace onset::tiles
