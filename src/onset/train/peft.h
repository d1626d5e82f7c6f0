// Adapters in PEFT's layout: adapter_config.json and adapter_model.safetensors in a folder.
#pragma once

#include <filesystem>
#include <string>

#include "onset/base/log.h"
#include "onset/train/lora.h"

namespace onset {

struct PeftAdapter {
  LoraConfig config;
  LoraTensors tensors;
};

// An adapter for this model. Modules are found by their names in transformers, also in a GGUF file
// and where the adapter's own file spells them as another version of transformers does. Throws
// input errors that name the file and the tensor: modules that the model lacks, other shapes, A
// without B, kinds of adapters that are not supported. Modules that the configuration names and the
// file does not hold are said on the log.
[[nodiscard]] PeftAdapter read_peft(Decoder& decoder, const std::filesystem::path& folder,
                                    const Log& log = {});

// Writes both files, each whole or not at all, the configuration last; the folder is made where it
// is missing. What the configuration chooses by other means (all linear modules, a regex, layers)
// is written as names, so that PEFT finds the same modules.
void write_peft(const std::filesystem::path& folder, const LoraAdapter& adapter);

}  // namespace onset
