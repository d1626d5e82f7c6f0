// Which experts of a mixture each token is sent to, and with what weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "onset/model/config.h"

namespace onset {

struct Routing {
  at::Tensor experts;  // [N, chosen] int64, ascending
  at::Tensor weights;  // [N, chosen] in the type of the logits
};

// By the logits [N, E] and, where the model has one, the correction bias [E] (MixtureConfig has the
// rule). An expert whose logit is -infinity is never chosen for its score: where too few others are
// left, its weight is 0. Differentiable in the logits through the weights.
[[nodiscard]] Routing route(const at::Tensor& logits, const MixtureConfig& mixture,
                            const at::Tensor& correction_bias);

// The tokens of one expert: rows of the packed tensor, ascending, and where their weights stand in
// the flattened [N * chosen].
struct ExpertRows {
  std::int64_t expert = 0;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> slots;
};

// Experts with at least one token, ascending. Throws std::logic_error for a number that is no
// expert's, which only an intervention can have put there.
[[nodiscard]] std::vector<ExpertRows> group_by_expert(const at::Tensor& experts,
                                                      std::int64_t expert_count);

}  // namespace onset
