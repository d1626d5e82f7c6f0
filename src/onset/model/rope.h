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

// `length`: of the sequence the frequencies are for; longrope chooses by it.
[[nodiscard]] RopeFrequencies rope_frequencies(const RopeConfig& config, std::int64_t length = 0);

// Whether sequences of the two lengths have other frequencies (longrope, on both sides of the
// original context): then what was computed for the shorter one is of no use for the longer.
[[nodiscard]] bool rope_changes_between(const RopeConfig& config, std::int64_t shorter,
                                        std::int64_t longer);

}  // namespace onset
