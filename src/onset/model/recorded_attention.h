// Attention of whole sequences with gradients of our own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "onset/kernels/attention_gradients.h"

namespace onset {

// softmax(scale q k^T) v [N, H, V], float32, of sequences that see nothing but themselves, causal
// and by the last `window` keys if that is not 0. Keeps q, k and v alone for the backward pass.
// has_tiles(TileType::f32) must hold.
[[nodiscard]] at::Tensor recorded_attention(const AttentionStates& states,
                                            const std::vector<AttendedRows>& sequences,
                                            double scale, std::int64_t window);

}  // namespace onset
