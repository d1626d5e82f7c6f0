// A model written as a folder in Hugging Face's layout, as transformers and onset itself open it.
// Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "onset/base/json.h"
#include "onset/checkpoint/dtype.h"
#include "onset/model/model.h"

namespace onset {

class Parameters;

struct SaveOptions {
  // Of all weights: f32, bf16 or f16. None: each as its base has it, bfloat16 for FP8, and float32
  // where the base is a GGUF file, whose quantised weights nothing smaller holds.
  std::optional<DType> dtype = std::nullopt;
  // What is trained, where the model is: gains that files store as w - 1 are then written as they
  // were trained, to the last bit.
  const Parameters* parameters = nullptr;
  // Put into config.json under "onset", where it is not null.
  OrderedJson onset_key = nullptr;
  std::int64_t shard_bytes = 5'000'000'000;  // a file is larger where one tensor is
};

// Writes the model as it stands, its adapters folded into the weights, into `folder`, which exists
// and is empty:
//   model.safetensors, or shards with model.safetensors.index.json
//   generation_config.json and the tokenizer's files: the base's, or made from the GGUF's metadata
//   config.json, last: the base's with what has changed, or made from the GGUF's metadata
// Tensors have transformers' names and order of rows. A head that equals the embedding is left out
// where the base ties them; where it has become another, config.json says that it is not tied.
// Tensors of the base that the model does not use are copied; FP8 weights are written without their
// scales, and "quantization_config" is left out.
// Each file appears whole or not at all; the folder as a whole does where the caller says so (see
// write_folder_atomically()). Memory: about one tensor. Throws an input error for a GGUF whose
// configuration or tokenizer Hugging Face's files cannot say, before anything is written; resource
// errors (disk full) name the file.
void save_model(const Model& model, const std::filesystem::path& folder,
                const SaveOptions& options = {});

// Writes what a tokenizer is read from, and generation_config.json, into `folder`: the files of the
// Hugging Face folder `source`, or those made from the metadata of the GGUF file `source`. Throws
// an input error where it has none.
void write_tokenizer_files(const std::filesystem::path& source,
                           const std::filesystem::path& folder);

}  // namespace onset
