// Attention of many queries without their scores in memory, on the tiles of tile_product.h.
// Torch-free.
#pragma once

#include <cstdint>

namespace onset {

// One key-value head and the queries of the heads that share it. Float32.
struct TileAttention {
  const float* q = nullptr;     // query t of head h at q + t * query_stride + h * dim
  const float* keys = nullptr;  // [seen, dim]
  // [value_dim, seen], so transposed; a row value_stride behind the one before it, 0: seen.
  const float* values = nullptr;
  std::int64_t value_stride = 0;
  float* out = nullptr;  // as q, by out_stride and value_dim
  std::int64_t queries = 0;
  std::int64_t heads = 0;  // that share the keys
  std::int64_t dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t query_stride = 0;
  std::int64_t out_stride = 0;
  // Keys; query t sees those up to seen - queries + t, the last `window` of them if not 0.
  std::int64_t seen = 0;
  std::int64_t window = 0;
  float scale = 1.0F;
};

// (query, head) pairs that are worked on together.
inline constexpr std::int64_t tile_attention_lanes = 32;

[[nodiscard]] inline std::int64_t blocks_of(const TileAttention& attention) {
  return (attention.queries * attention.heads + tile_attention_lanes - 1) / tile_attention_lanes;
}

// softmax(scale q k^T) v for block b of the pairs, in order of queries, then heads. Runs on the
// calling thread; several may call it at a time. has_tiles(TileType::f32) must hold.
void attend_tile(const TileAttention& attention, std::int64_t b);

}  // namespace onset
