// The weights of a mixture layer, under the names of either format. Inside the model room.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/model/tensor_finder.h"
#include "onset/model/weights.h"

namespace onset {

[[nodiscard]] FfnWeights find_ffn(TensorFinder& finder, const FfnNames& names, std::int64_t layer,
                                  std::int64_t inner, std::int64_t hidden, bool bias);

// Everything but the experts.
[[nodiscard]] MixtureWeights find_mixture(TensorFinder& finder, const ModelConfig& config,
                                          std::int64_t layer);
// Expert by expert, or as slices of the stacks [E, .., ..] that GGUF and newer files hold.
[[nodiscard]] std::vector<FfnWeights> find_experts(TensorFinder& finder, const ModelConfig& config,
                                                   std::int64_t layer);

}  // namespace onset
