// adapter_config.json, as PEFT writes it for LoRA. Torch-free.
#pragma once

#include <filesystem>
#include <string>

#include "onset/base/json.h"
#include "onset/train/lora_config.h"

namespace onset {

// Throws input errors that name the file and the key: for another kind of adapter than LoRA, for
// what LoRA can be in PEFT and is not here (DoRA, biases, ..), for values of a wrong type.
[[nodiscard]] LoraConfig read_peft_config(const std::filesystem::path& folder);

// The keys that versions of PEFT agree on, without a version of its own.
[[nodiscard]] OrderedJson peft_config_json(const LoraConfig& config);

}  // namespace onset
