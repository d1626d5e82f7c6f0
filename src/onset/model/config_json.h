// config.json for a model that was read from a file without one. Torch-free; inside the model room.
#pragma once

#include <string>

#include "onset/base/json.h"
#include "onset/model/config.h"

namespace onset {

// The configuration in the older spelling (rope_theta, rope_scaling, torch_dtype), which
// transformers of all versions and read_config() read. `where` is the file to name in errors.
// Throws an input error for what the family's config.json cannot say: a table of RoPE divisors that
// is not Llama 3's, windows or mixtures in layers that its rules do not reach, another scale of the
// scores.
[[nodiscard]] OrderedJson config_json(const ModelConfig& config, const std::string& where);

}  // namespace onset
