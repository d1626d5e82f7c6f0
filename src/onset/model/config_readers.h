// The two spellings of a configuration. Inside the model room; others call read_config().
#pragma once

#include <string>

#include "onset/model/config.h"

namespace onset {

// `where` is the file to name in errors.
[[nodiscard]] ModelConfig read_hf_config(const Checkpoint& checkpoint, const std::string& where);
[[nodiscard]] ModelConfig read_gguf_config(const Checkpoint& checkpoint, const std::string& where);

}  // namespace onset
