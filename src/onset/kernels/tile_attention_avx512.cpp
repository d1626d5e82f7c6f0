// The kernel of tile_attention.h, compiled for AVX-512; called only where the CPU has it.
//
// The scores lie as the products leave them, [keys, lanes]: a column of the soft maximum is a lane,
// and the weights are at once the packed rows of the second product.
#include "onset/kernels/tile_kernels.h"
#include "onset/kernels/tile_softmax_avx512.h"
#include "onset/kernels/tile_strips_avx512.h"

namespace onset::tiles {
namespace {

constexpr std::int64_t vectors = 2;
constexpr std::int64_t lanes = vectors * vector_lanes;

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
  const Scores scores{.scores = attention.scores,
                      .lanes = lanes,
                      .key_count = attention.key_count,
                      .first_key = attention.first_key,
                      .last_key = attention.last_key};
  __m512 inverse[vectors];  // NOLINT(modernize-avoid-c-arrays)
  for (std::int64_t v = 0; v < vectors; ++v) {
    inverse[v] = _mm512_div_ps(_mm512_set1_ps(1.0F), soften(scores, v));
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
