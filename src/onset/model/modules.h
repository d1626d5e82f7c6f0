// The modules of a model under the names that transformers gives them, whatever file the model was
// read from: what adapters name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "onset/model/decoder.h"

namespace onset {

enum class ModuleRole { projection, router, head };

// A linear module. One matrix of the file may be several layers here (fused projections); experts
// are modules of their own, also where the file stacks them.
struct LinearModule {
  std::string name;            // "model.layers.0.self_attn.qkv_proj"
  std::vector<Linear*> parts;  // whose rows stand one after the other in the module's weight
  ModuleRole role = ModuleRole::projection;

  [[nodiscard]] std::int64_t out_features() const;
  [[nodiscard]] std::int64_t in_features() const { return parts.front()->in_features(); }
};

// A norm.
struct NormModule {
  std::string name;            // "model.layers.0.input_layernorm"
  at::Tensor* gain = nullptr;  // as it multiplies
};

// In the order of the forward pass, the head last. The decoder must outlive the result.
[[nodiscard]] std::vector<LinearModule> linear_modules(Decoder& decoder);
[[nodiscard]] std::vector<NormModule> norm_modules(Decoder& decoder);
// "model.embed_tokens".
[[nodiscard]] std::string embedding_module(const Decoder& decoder);

}  // namespace onset
