// What a model is, by its content. Torch-free.
#pragma once

#include <string>

namespace onset {

class Model;

// 32 hexadecimal digits of everything that its answers depend on: every byte of its weights, its
// configuration, the files beside it that a tokenizer reads, and the adapter on it. Reads all of
// the weights once. A copy of the model elsewhere has the same identity; one changed weight makes
// another.
[[nodiscard]] std::string model_identity(const Model& model);

}  // namespace onset
