// Gradients of causal attention of several sequences at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace onset {

// Consecutive rows that are the tokens of a sequence.
struct AttendedRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct AttentionStates {
  at::Tensor q;  // [N, H, K]
  at::Tensor k;  // [N, G, K]
  at::Tensor v;  // [N, G, V]
};

// Of softmax(scale q k^T) v [N, H, V], by its gradient `dout`; float32 and contiguous all. Query t
// of a sequence sees its tokens up to t, the last `window` of them if not 0. The sums do not depend
// on the number of threads. has_tiles(TileType::f32) must hold.
[[nodiscard]] AttentionStates attention_gradients(const at::Tensor& dout,
                                                  const AttentionStates& states,
                                                  std::span<const AttendedRows> sequences,
                                                  double scale, std::int64_t window);

}  // namespace onset
