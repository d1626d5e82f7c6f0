// Attention of single queries to the keys and values in caches: what decoding does for every
// sequence of a batch, in one call for all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace onset {

// One sequence's query and what it sees. The pointers are of the type of the queries.
struct CachedQuery {
  std::int64_t row = 0;          // of the queries and of the output
  const void* keys = nullptr;    // [G, capacity, K]
  const void* values = nullptr;  // [G, capacity, V]
  std::int64_t capacity = 0;
  std::int64_t length = 0;  // positions that are filled, the query's own the last
};

struct CachedAttention {
  std::int64_t groups = 0;     // G; the query heads h G/H .. share key-value head h
  std::int64_t value_dim = 0;  // V
  std::int64_t window = 0;     // the last positions that are seen; 0: all
  double scale = 1.0;          // times q k^T
  double softcap = 0.0;        // c tanh(x / c) of the scores; 0: none
};

// softmax(scale q k^T) v for the rows of `queries`; q [N, H, K] and out [N, H, V] contiguous,
// float32 or float64. Other rows of `out` stay as they are. Not differentiable.
void attend_cached(const at::Tensor& q, std::span<const CachedQuery> queries,
                   const CachedAttention& attention, const at::Tensor& out);

}  // namespace onset
