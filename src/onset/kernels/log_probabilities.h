// Log-probabilities of tokens and their gradients by the logits, in one walk over each row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace onset {

struct LogProbabilities {
  at::Tensor values;         // [n]
  std::int64_t correct = 0;  // rows whose token is the most likely one
};

// log softmax(logits)_token for logits [n, V], float32 and contiguous, and tokens [n, 1]. Leaves
// factor_i (softmax - one-hot) in `logits`, where -dvalue / dlogits is softmax - one-hot. factors
// [n].
[[nodiscard]] LogProbabilities take_log_probabilities(const at::Tensor& logits,
                                                      const at::Tensor& tokens,
                                                      const at::Tensor& factors);

}  // namespace onset
