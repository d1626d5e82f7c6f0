// Log-probabilities of tokens, with gradients, without the logits of all of them at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace onset {

class Decoder;

// Tokens to be scored, by the rows of a pass's hidden states.
struct ScoredRows {
  std::vector<std::int64_t> rows;     // [n], of the token before each, ascending
  std::vector<std::int64_t> targets;  // [n], the tokens' ids
};

struct TokenLogps {
  at::Tensor values;         // [n], float32 (float64 in f64)
  std::int64_t correct = 0;  // tokens that were the most likely ones
};

struct HeadOptions {
  // Above 0; that of the sampler, so that ratios of GRPO compare the distributions drawn from.
  double temperature = 1.0;
  // That the loss weighs all tokens alike is expected: then gradients of the head are made along
  // with the values. A loss that does not is right all the same, and slower.
  bool equal_gradients = false;
};

// log softmax(logits / temperature)[target] of each token. hidden: [N, D], ForwardResult::hidden.
// The head runs over some rows at a time, so that logits never stand in memory for all of them;
// what the backward pass needs of them is made in the forward pass where that is possible, and
// computed again otherwise.
[[nodiscard]] TokenLogps token_logps(const Decoder& decoder, const at::Tensor& hidden,
                                     const ScoredRows& scored, const HeadOptions& options = {});

}  // namespace onset
