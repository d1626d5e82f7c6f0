// The table of families: one row each, the only place that knows them by name.
#pragma once

#include <span>
#include <string_view>

#include "onset/model/config.h"

namespace onset {

enum class WindowRule {
  none,    // no sliding window
  all,     // `sliding_window`, where given, holds for every layer (Mistral)
  opt_in,  // only with `use_sliding_window`, from layer `max_window_layers` on (Qwen2, Qwen3)
};

struct Family {
  std::string_view name;      // our architecture and HF's `model_type`
  std::string_view gguf;      // `general.architecture`; several families may share one
  std::string_view examples;  // for messages
  bool qkv_bias;              // biases of q, k, v unless the config says otherwise
  bool qk_norm;
  bool tied_by_default;  // where the config does not say
  bool gguf_permuted_qk;
  WindowRule window;
};

[[nodiscard]] std::span<const Family> families();
// nullptr when unknown.
[[nodiscard]] const Family* family_of_hf(std::string_view model_type);
[[nodiscard]] const Family* family_of_gguf(std::string_view architecture);

}  // namespace onset
