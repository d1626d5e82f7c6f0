// Gradients of attention without its scores in memory, on the tiles of tile_product.h: they are
// computed again, as in FlashAttention-2 (Dao 2023, arXiv 2307.08691, algorithm 2). Torch-free.
#pragma once

#include <cstdint>
#include <vector>

namespace onset {

// One key-value head and the queries of the heads that share it; all of a sequence, or those up to
// a query of it.
struct TileAttentionGradient {
  const float* q = nullptr;     // query t of head h at q + t * query_stride + h * dim
  const float* dout = nullptr;  // so too, by out_stride and value_dim
  float* dq = nullptr;          // as q, written
  std::int64_t query_stride = 0;
  std::int64_t out_stride = 0;
  const float* keys = nullptr;  // key j at keys + j * key_stride, of `dim` values
  const float* values = nullptr;
  std::int64_t key_stride = 0;
  std::int64_t value_stride = 0;
  std::int64_t first_query = 0;  // those before it are left out
  std::int64_t queries = 0;      // as many keys; query t sees those up to t
  std::int64_t heads = 0;        // that share the keys
  std::int64_t dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t window = 0;  // the last so many keys alone; 0: all
  float scale = 1.0F;
};

// Of the keys and values, in rows of a length that is a multiple of 16.
struct KeyGradients {
  std::vector<float> keys;    // [queries, key_stride]
  std::vector<float> values;  // [queries, value_stride]
  std::int64_t key_stride = 0;
  std::int64_t value_stride = 0;
};

// Writes dq of the queries [first_query, queries). Runs on the calling thread; several may call it
// at a time. has_tiles(TileType::f32) must hold.
[[nodiscard]] KeyGradients attend_gradient(const TileAttentionGradient& attention);

}  // namespace onset
