// Attention of many queries of one sequence in blocks whose scores stay in the cache.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace onset {

struct BlockedAttention {
  double scale = 1.0;
  std::int64_t window = 0;  // a query sees its last `window` positions; 0: all
  double softcap = 0.0;     // c tanh(score / c) before the softmax; 0: none
};

// q [T, H, K] at the last T of S positions, k [G, S, K], v [G, S, V], all float32 on the CPU, not
// to be differentiated: softmax(scale q k^T) v [T, H, V], causal. Query head h uses key-value head
// h / (H / G).
[[nodiscard]] at::Tensor blocked_attention(const at::Tensor& q, const at::Tensor& k,
                                           const at::Tensor& v, const BlockedAttention& options);

}  // namespace onset
