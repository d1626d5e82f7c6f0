// The gradients of all trained tensors together: their norm, clipping, and what is wrong with them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onset/model/parameter.h"

namespace onset {

[[nodiscard]] std::int64_t element_count(std::span<const Parameter> parameters);

// The 2-norm over all gradients, those of a tensor in its own precision, their sum in float64. A
// tensor without a gradient (an expert that no token was sent to) counts as 0.
[[nodiscard]] double gradient_norm(std::span<const Parameter> parameters);

// The names of tensors whose gradient has a NaN or an infinity.
[[nodiscard]] std::vector<std::string> non_finite_gradients(std::span<const Parameter> parameters);

// Scales every gradient by min(1, max_norm / (norm + 1e-6)), as torch's clip_grad_norm_ does;
// max_norm 0: leaves them. Returns the norm before. Throws an input error that names the tensors
// where the norm is not finite: an update with it would spoil every weight.
double clip_gradients(std::span<const Parameter> parameters, double max_norm);

// The same for runs that go on after such a step: nothing is returned, or changed, where the norm
// is not finite, and the caller skips the update.
[[nodiscard]] std::optional<double> clip_gradients_if_finite(std::span<const Parameter> parameters,
                                                             double max_norm);

void clear_gradients(std::span<const Parameter> parameters);

}  // namespace onset
