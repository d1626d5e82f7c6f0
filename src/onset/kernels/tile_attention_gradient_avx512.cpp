// The kernel of tile_attention_gradient.h, compiled for AVX-512; called only where the CPU has it.
#include "onset/kernels/tile_kernels.h"
#include "onset/kernels/tile_softmax_avx512.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::tiles {
namespace {

constexpr std::int64_t vectors = 2;
constexpr std::int64_t lanes = vectors * vector_lanes;

// sums[r, lane] = sum_c rows[r, c] x[c, lane] for `count` rows of `words` values.
void multiply(const float* rows, std::int64_t stride, std::int64_t count, const float* x,
              std::int64_t words, float* sums) {
  const char* nothing = reinterpret_cast<const char*>(rows);
  add_up<TileType::f32>({.weights = reinterpret_cast<const std::uint32_t*>(rows),
                         .stride = stride,
                         .count = count,
                         .x = x,
                         .words = words,
                         .vectors = vectors,
                         .sums = sums},
                        {nothing, nothing});
}

void pack(const float* rows, std::int64_t stride, std::int64_t columns, float* to) {
  turn_f32({.values = rows, .stride = stride, .rows = lanes, .columns = columns}, lanes, to);
}

// From scores to the weights of the keys.
void soften_all(const AttentionGradient& attention) {
  const Scores scores{.scores = attention.weights,
                      .lanes = lanes,
                      .key_count = attention.key_count,
                      .first_key = attention.first_key,
                      .last_key = attention.last_key};
  for (std::int64_t v = 0; v < vectors; ++v) {
    const __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1.0F), soften(scores, v));
    for (std::int64_t key = 0; key < attention.key_count; ++key) {
      float* at = attention.weights + key * lanes + v * vector_lanes;
      _mm512_storeu_ps(at, _mm512_mul_ps(_mm512_loadu_ps(at), inverse));
    }
  }
}

// From gradients of the weights p to those of the scores: p (dp - sum p dp).
void pass_soft_maximum(const AttentionGradient& attention) {
  for (std::int64_t v = 0; v < vectors; ++v) {
    const float* weight = attention.weights + v * vector_lanes;
    float* change = attention.changes + v * vector_lanes;
    __m512 total = _mm512_setzero_ps();
    for (std::int64_t begin = 0; begin < attention.key_count; begin += tile_depth) {
      const std::int64_t end = std::min(begin + tile_depth, attention.key_count);
      __m512 sum = _mm512_setzero_ps();
      for (std::int64_t key = begin; key < end; ++key) {
        const __m512 p = _mm512_loadu_ps(weight + key * lanes);
        // A key that is not seen adds nothing, whatever its value is.
        const __mmask16 seen = _mm512_cmp_ps_mask(p, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        sum = _mm512_mask3_fmadd_ps(p, _mm512_loadu_ps(change + key * lanes), sum, seen);
      }
      total = _mm512_add_ps(total, sum);
    }
    for (std::int64_t key = 0; key < attention.key_count; ++key) {
      const __m512 p = _mm512_loadu_ps(weight + key * lanes);
      const __mmask16 seen = _mm512_cmp_ps_mask(p, _mm512_setzero_ps(), _CMP_NEQ_UQ);
      float* at = change + key * lanes;
      _mm512_storeu_ps(at, _mm512_maskz_mul_ps(seen, p, _mm512_sub_ps(_mm512_loadu_ps(at), total)));
    }
  }
}

}  // namespace

void attend_gradient(const AttentionGradient& attention) {
  const std::int64_t keys = attention.key_count;
  pack(attention.queries, attention.dim_stride, attention.dim, attention.packed);
  multiply(attention.keys, attention.dim, keys, attention.packed, attention.dim, attention.weights);
  soften_all(attention);
  pack(attention.dout, attention.value_stride, attention.value_dim, attention.packed);
  multiply(attention.values, attention.value_dim, keys, attention.packed, attention.value_dim,
           attention.changes);
  pass_soft_maximum(attention);
  multiply(attention.turned_keys, attention.turned_stride, attention.dim, attention.changes, keys,
           attention.sums);
  write_out({.count = attention.dim, .vectors = vectors, .sums = attention.sums},
            {.out = attention.dqueries, .stride = attention.dim, .rows = lanes});
  accumulate({.weights = attention.changes,
              .weight_stride = lanes,
              .count = keys,
              .x = attention.queries,
              .x_stride = attention.dim_stride,
              .words = lanes,
              .columns = attention.dim_stride,
              .out = attention.dkeys,
              .out_stride = attention.dim_stride});
  accumulate({.weights = attention.weights,
              .weight_stride = lanes,
              .count = keys,
              .x = attention.dout,
              .x_stride = attention.value_stride,
              .words = lanes,
              .columns = attention.value_stride,
              .out = attention.dvalues,
              .out_stride = attention.value_stride});
}

}  // namespace onset::tiles
