// Log-probabilities of completions of prompts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "onset/train/policy.h"

namespace onset {

// The completion behind the prompt; its tokens are those that count. The prompt has a token.
[[nodiscard]] SftExample completion_example(const TokenIds& prompt, const TokenIds& completion);

struct SummedLogps {
  at::Tensor sums;                   // [number of examples], float64, with gradients
  std::vector<std::int64_t> counts;  // tokens summed, beside it
};
// Summed over each example's trained tokens.
[[nodiscard]] SummedLogps summed_logps(const Policy& policy, std::span<const SftExample> examples,
                                       const LogpOptions& options = {});

// Pointers to them, as Policy::logps takes examples.
[[nodiscard]] std::vector<const SftExample*> pointers_to(std::span<const SftExample> examples);

}  // namespace onset
