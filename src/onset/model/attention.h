// Attention of one sequence over its keys: causal, with an optional sliding window.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "onset/model/model.h"

namespace onset {

// Queries at positions S - T .. S - 1 over keys at positions 0 .. S - 1. Query head h uses
// key-value head h / (H / G). Query i sees key j when j <= i and, with a window W > 0, j > i - W.
struct AttentionInput {
  at::Tensor q;  // [T, H, K]
  at::Tensor k;  // [G, S, K]
  at::Tensor v;  // [G, S, V]
  double scale = 1.0;
  std::int64_t window = 0;  // 0: none
  double softcap = 0.0;     // c tanh(score / c) before the mask; 0: none
};

// [T, H, V], without the scores of all pairs in memory: by a fused kernel, or, with a soft cap, in
// blocks of queries.
[[nodiscard]] at::Tensor fused_attention(const AttentionInput& input);

// [H, T, S]: scale * q k^T, soft-capped, and -inf where a query does not see the key. `v` is not
// looked at.
[[nodiscard]] at::Tensor attention_scores(const AttentionInput& input);

// Called with scores or probabilities [H, T, S]; returns what to go on with.
using AttentionHook = std::function<at::Tensor(at::Tensor)>;

// [T, H, V], with the scores and probabilities at hand.
[[nodiscard]] at::Tensor explicit_attention(const AttentionInput& input,
                                            const AttentionHook& on_scores,
                                            const AttentionHook& on_probs);

}  // namespace onset
