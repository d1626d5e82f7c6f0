// The `model` object of results.
#pragma once

#include <optional>
#include <string>

#include "onset/base/json.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"

namespace onset::app {

// "safetensors" or "gguf".
[[nodiscard]] std::string format_name(const Checkpoint& checkpoint);

// architecture, format, layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context.
[[nodiscard]] OrderedJson model_json(const ModelConfig& config, const Checkpoint& checkpoint);

}  // namespace onset::app
