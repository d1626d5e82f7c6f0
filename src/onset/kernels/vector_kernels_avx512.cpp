#include "onset/kernels/vector_kernels.h"

#include <cmath>

#include "onset/kernels/tile_softmax_avx512.h"

namespace onset::vectors {
namespace {

using tiles::exp_of;
using tiles::first_lanes;
using tiles::vector_lanes;

// Terms of each lane that are added in float32 before they join a sum in float64.
constexpr std::int64_t chain = 64 * vector_lanes;

// A NaN in any number makes it NaN.
float largest_of(const float* row, std::int64_t count) {
  const __m512 lowest = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  __m512 largest = lowest;
  for (std::int64_t i = 0; i < count; i += vector_lanes) {
    largest = _mm512_max_ps(largest, _mm512_mask_loadu_ps(lowest, first_lanes(count - i), row + i));
  }
  return _mm512_reduce_max_ps(largest);
}

// Eight numbers [at, at + 8) in float64; those past the end are zero.
inline __m512d doubles(const float* row, std::int64_t at, std::int64_t count) {
  const auto some = static_cast<__mmask8>(first_lanes(std::min<std::int64_t>(8, count - at)));
  return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(some, row + at));
}

inline __m512 numbers(const float* from, __mmask16 some) {
  return _mm512_maskz_loadu_ps(some, from);
}
inline __m512 numbers(const std::uint16_t* from, __mmask16 some) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from)), 16));
}

inline __m512 sigmoid_of(__m512 g) {
  // By exp(-|g|), which cannot overflow: 1 / (1 + e) or e / (1 + e).
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 e = exp_of(_mm512_sub_ps(_mm512_setzero_ps(), _mm512_abs_ps(g)));
  const __mmask16 negative = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_div_ps(_mm512_mask_mov_ps(one, negative, e), _mm512_add_ps(one, e));
}

template <typename Number>
void gradients_of(const GatedArrays<Number>& arrays, const GatedGradientArrays& gradients,
                  std::int64_t begin, std::int64_t end) {
  const __m512 one = _mm512_set1_ps(1.0F);
  for (std::int64_t i = begin; i < end; i += vector_lanes) {
    const __mmask16 some = first_lanes(end - i);
    const __m512 g = numbers(arrays.gate + i, some);
    const __m512 up = numbers(arrays.up + i, some);
    const __m512 s = sigmoid_of(g);
    const __m512 slope = _mm512_fmadd_ps(g, _mm512_sub_ps(one, s), one);  // 1 + g (1 - s)
    const __m512 dy_s = _mm512_mul_ps(_mm512_maskz_loadu_ps(some, gradients.dy + i), s);
    _mm512_mask_storeu_ps(gradients.dup + i, some, _mm512_mul_ps(dy_s, g));
    _mm512_mask_storeu_ps(gradients.dgate + i, some, _mm512_mul_ps(_mm512_mul_ps(dy_s, up), slope));
  }
}

}  // namespace

SoftRow soften_row(float* row, std::int64_t count) {
  const SoftRow found{.largest = largest_of(row, count)};
  const __m512 largest = _mm512_set1_ps(found.largest);
  double sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += chain) {
    const std::int64_t end = std::min(begin + chain, count);
    __m512 part = _mm512_setzero_ps();
    for (std::int64_t i = begin; i < end; i += vector_lanes) {
      const __mmask16 some = first_lanes(end - i);
      const __m512 distance = _mm512_sub_ps(_mm512_maskz_loadu_ps(some, row + i), largest);
      const __mmask16 nan = _mm512_cmp_ps_mask(distance, distance, _CMP_UNORD_Q);
      const __m512 weight = _mm512_mask_mov_ps(exp_of(distance), nan, distance);
      _mm512_mask_storeu_ps(row + i, some, weight);
      part = _mm512_mask_add_ps(part, some, part, weight);
    }
    sum += static_cast<double>(_mm512_reduce_add_ps(part));
  }
  return {.largest = found.largest, .sum = sum};
}

void scale_row(float* row, std::int64_t count, float factor) {
  const __m512 all = _mm512_set1_ps(factor);
  for (std::int64_t i = 0; i < count; i += vector_lanes) {
    const __mmask16 some = first_lanes(count - i);
    _mm512_mask_storeu_ps(row + i, some, _mm512_mul_ps(_mm512_maskz_loadu_ps(some, row + i), all));
  }
}

void silu_gated(const RoundedArrays& arrays, float* product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; i += vector_lanes) {
    const __mmask16 some = first_lanes(end - i);
    const __m512 g = numbers(arrays.gate + i, some);
    const __m512 silu = _mm512_mul_ps(g, sigmoid_of(g));
    _mm512_mask_storeu_ps(product + i, some, _mm512_mul_ps(silu, numbers(arrays.up + i, some)));
  }
}

void silu_gated_gradients(const GatedArrays<float>& arrays, const GatedGradientArrays& gradients,
                          std::int64_t begin, std::int64_t end) {
  gradients_of(arrays, gradients, begin, end);
}

void silu_gated_gradients(const RoundedArrays& arrays, const GatedGradientArrays& gradients,
                          std::int64_t begin, std::int64_t end) {
  gradients_of(arrays, gradients, begin, end);
}

void norm_row_gradient(const NormRow& row) {
  constexpr std::int64_t step = 8;
  __m512d squares = _mm512_setzero_pd();
  __m512d along = _mm512_setzero_pd();  // dy gain x
  for (std::int64_t d = 0; d < row.width; d += step) {
    const __m512d x = doubles(row.x, d, row.width);
    const __m512d g = _mm512_mul_pd(doubles(row.dy, d, row.width), doubles(row.gain, d, row.width));
    squares = _mm512_fmadd_pd(x, x, squares);
    along = _mm512_fmadd_pd(g, x, along);
  }
  const auto size = static_cast<double>(row.width);
  const double scale = 1.0 / std::sqrt(_mm512_reduce_add_pd(squares) / size + row.eps);
  const double back = scale * scale * scale * _mm512_reduce_add_pd(along) / size;
  const __m512d scales = _mm512_set1_pd(scale);
  const __m512d backs = _mm512_set1_pd(back);
  for (std::int64_t d = 0; d < row.width; d += step) {
    const auto some = static_cast<__mmask8>(first_lanes(std::min(step, row.width - d)));
    const __m512d x = doubles(row.x, d, row.width);
    const __m512d scaled = _mm512_mul_pd(doubles(row.dy, d, row.width), scales);
    const __m512d dx =
        _mm512_fmsub_pd(scaled, doubles(row.gain, d, row.width), _mm512_mul_pd(backs, x));
    _mm256_mask_storeu_ps(row.dx + d, some, _mm512_cvtpd_ps(dx));
    if (row.gain_sums == nullptr) continue;
    const __m512d sum = _mm512_maskz_loadu_pd(some, row.gain_sums + d);
    _mm512_mask_storeu_pd(row.gain_sums + d, some, _mm512_fmadd_pd(scaled, x, sum));
  }
}

}  // namespace onset::vectors
