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

// Numbers of its weights; as a double, for settings may ask for more than any count holds.
[[nodiscard]] double new_model_weights(const PretrainSettings& settings, std::int64_t vocabulary);

}  // namespace onset
