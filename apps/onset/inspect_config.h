// What a configuration says beside its sizes: RoPE, windows, soft caps, tied embeddings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onset/base/json.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"

namespace onset::app {

// Adds rope, sliding_window, attention_softcap, logit_softcap and tied_embeddings.
void add_config(OrderedJson& model, const ModelConfig& config, const Checkpoint& checkpoint);

// The same for people: names and texts.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> config_rows(
    const ModelConfig& config, const Checkpoint& checkpoint);

}  // namespace onset::app
