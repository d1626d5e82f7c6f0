// Gradients and weights of the ranks of a data-parallel run: each has all weights and a share of
// the window.
#pragma once

#include <span>

#include "onset/base/ranks.h"
#include "onset/model/parameter.h"

namespace onset {

// Replaces each gradient by its sum over the ranks, small ones together. A tensor that has a
// gradient on some ranks alone (an expert, a rank without a micro-batch) has one on all afterwards.
void add_gradients(std::span<const Parameter> parameters, const Ranks& ranks);

// Throws an input error on all ranks where the tensors' bytes differ between them.
void check_same_weights(std::span<const Parameter> parameters, const Ranks& ranks);

}  // namespace onset
