// What a mask takes away from the attention input, for people to see what they mask. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/base/log.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;

// Of one masked layer, means over the masked tokens of all prompts, each layer's input being what
// the masked layers before it leave.
struct MaskedLayer {
  std::int64_t layer = 0;
  std::int64_t tokens = 0;  // masked ones; without any the rest is 0
  // sum over S of x^2 (1 - (1 - gamma)^2) / sum of x^2, x the attention input before the mask.
  double energy_removed = 0;
  // |S and A| / |S or A|, A the k dims with the largest |x|: what `activation` would mask.
  double activation_overlap = 0;
  std::vector<std::int64_t> first_dims;  // the first few of S, of the first masked token
};

// Runs the prompts under the mask. Throws a usage error for a prompt without tokens.
[[nodiscard]] std::vector<MaskedLayer> mask_effect(
    const Model& model, const MaskSpec& spec, const std::vector<std::vector<std::int64_t>>& prompts,
    const Log& log = {});

}  // namespace onset
