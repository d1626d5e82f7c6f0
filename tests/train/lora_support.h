// Adapters with drawn values, for tests.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "onset/base/strings.h"
#include "onset/model/decoder.h"
#include "onset/train/lora.h"
#include "support/support.h"
#include "support/toy.h"

namespace onset::testing {

inline Model open_model(const std::filesystem::path& path, Compute compute = Compute::f32) {
  return Model::open(path, {.compute = compute, .residency = Residency::resident});
}

// Recorded by autograd where it is on: attention then goes another way, and rounds otherwise.
inline at::Tensor logits_of(const Model& model, const std::vector<std::int64_t>& ids) {
  const std::vector<SequenceInput> batch{{.ids = ids}};
  return model.decoder().forward(batch, LogitRows::all).logits;
}

inline const std::vector<std::int64_t> some_ids{1, 17, 42, 99, 5, 63};

// Numbers between -1 and 1 that differ from tensor to tensor.
inline at::Tensor wave(at::IntArrayRef shape, double phase, at::ScalarType type = at::kFloat) {
  const auto count = c10::multiply_integers(shape);
  return at::sin(at::arange(count, at::kDouble).mul(1.7).add(phase)).view(shape).to(type);
}

// The configuration's adapter with values in B too, as training leaves it.
inline LoraTensors drawn_lora(Decoder& decoder, const LoraConfig& config) {
  LoraTensors tensors = new_lora(decoder, config, /*seed=*/7);
  double phase = 0;
  for (AdaptedModule& module : tensors.adapted) {
    module.up = wave(module.up.sizes(), phase += 1, module.up.scalar_type()).mul(0.05);
  }
  for (SavedModule& module : tensors.saved) {
    module.weight = module.weight.add(
        wave(module.weight.sizes(), phase += 1, module.weight.scalar_type()).mul(0.05));
  }
  return tensors;
}

// W += s B A in the toy's own tensors; a tied head gets its own first.
inline void merge_by_hand(Toy& toy, const LoraTensors& tensors) {
  for (const AdaptedModule& module : tensors.adapted) {
    const std::string name = module.name + ".weight";
    if (toy.values.count(name) == 0 && module.name == "lm_head") {
      toy.config["tie_word_embeddings"] = false;
      toy.values[name] = toy.values.at("model.embed_tokens.weight");
      toy.shapes[name] = toy.shapes.at("model.embed_tokens.weight");
    }
    const at::Tensor change =
        at::mm(module.up.to(at::kDouble), module.down.to(at::kDouble)).mul(module.scale);
    std::vector<float>& weight = toy.values.at(name);
    const double* added = change.const_data_ptr<double>();
    for (float& value : weight) value = static_cast<float>(value + *added++);
  }
}

}  // namespace onset::testing
