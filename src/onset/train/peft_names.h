// Names of tensors in PEFT's files. Inside the train room; torch-free.
#pragma once

#include <string>
#include <string_view>

namespace onset {

enum class PeftTensorKind { lora_a, lora_b, weight, bias, unsupported };

struct PeftTensorName {
  PeftTensorKind kind = PeftTensorKind::unsupported;
  // "model.layers.0.self_attn.q_proj"; of an unsupported tensor what PEFT calls it.
  std::string module;
};

// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", with or without the first two
// parts and the adapter's own name behind lora_A.
[[nodiscard]] PeftTensorName parse_peft_name(std::string_view tensor);

// The same for every spelling of a module that is the same module: what stands before "layers."
// differs with what the model is part of, and Mixtral's block has had two names.
[[nodiscard]] std::string canonical_module(std::string_view module);

}  // namespace onset
