// The `model` object of results.
#pragma once

#include <optional>
#include <string>

#include "onset/base/json.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"
#include "onset/model/model.h"

namespace onset::app {

// "safetensors" or "gguf".
[[nodiscard]] std::string format_name(const Checkpoint& checkpoint);

// architecture, format, layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, context.
[[nodiscard]] OrderedJson model_json(const ModelConfig& config, const Checkpoint& checkpoint);
// The same of an open model, and `adapter`: what was put on it, null without one.
[[nodiscard]] OrderedJson model_json(const Model& model);

// ", LoRA adapter of rank 8 on 210 modules (1f0e..)" for the `adapter` of a model; empty for
// null.
[[nodiscard]] std::string adapter_words(const OrderedJson& adapter);

}  // namespace onset::app
