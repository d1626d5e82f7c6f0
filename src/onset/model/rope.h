// Rotary position embedding: the inverse frequencies of each kind of scaling. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/model/config.h"

namespace onset {

struct RopeFrequencies {
  // rotary_dim / 2 values; dims i and i + rotary_dim / 2 turn by position * inverse[i] radians.
  // Rounded to float32, as the reference implementations hold them.
  std::vector<float> inverse;
  double scale = 1.0;  // times cos and sin (yarn's attention factor)
};

[[nodiscard]] RopeFrequencies rope_frequencies(const RopeConfig& config);

}  // namespace onset
