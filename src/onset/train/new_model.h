// A model before its first step: a configuration and random weights. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>

#include "onset/train/settings.h"

namespace onset {

class Tokenizer;

// Writes a model in Hugging Face's layout into `folder`, which exists: weights from the normal
// distribution with a standard deviation of initializer_range by `seed` and the tensor's name,
// gains 1; and the tokenizer of `source` (a folder or a GGUF file). Throws usage errors for shapes
// that do not fit together.
void write_new_model(const std::filesystem::path& folder, const PretrainSettings& settings,
                     const std::filesystem::path& source, const Tokenizer& tokenizer,
                     std::uint64_t seed);

}  // namespace onset
