// The table of families: one row each, the only place that knows them by name.
#pragma once

#include <span>
#include <string_view>

#include "onset/model/config.h"

namespace onset {

enum class WindowRule {
  none,         // no sliding window
  all,          // `sliding_window`, where given, holds for every layer (Mistral, Phi-3)
  opt_in,       // only with `use_sliding_window`, from layer `max_window_layers` on (Qwen2, Qwen3)
  opt_in_all,   // only with `use_sliding_window`, every layer (Qwen3-MoE)
  opt_in_even,  // only with `use_sliding_window`, even layers below `max_window_layers` (Qwen2-MoE)
  alternating,  // even layers (Gemma 2)
  pattern,      // all but every Nth layer, N from `sliding_window_pattern` (Gemma 3)
};

// Where the sizes and the routing of a mixture stand in config.json.
enum class MixtureRule {
  none,
  every_layer,  // `num_local_experts`, `intermediate_size` (Mixtral)
  qwen,         // `num_experts`, `moe_intermediate_size`, `decoder_sparse_step`, `mlp_only_layers`
  deepseek,     // `n_routed_experts`, `first_k_dense_replace`, groups
};

struct Family {
  std::string_view name;       // our architecture and HF's `model_type`
  std::string_view gguf;       // `general.architecture`
  std::string_view examples;   // for messages
  std::string_view causal_lm;  // transformers' class, "architectures" of config.json
  bool qkv_bias = false;       // biases of q, k, v unless the config says otherwise
  QkNorm qk_norm = QkNorm::none;
  bool tied_by_default = false;  // where the config does not say
  bool gguf_permuted_qk = false;
  WindowRule window = WindowRule::none;
  bool pre_norms = true;
  bool post_norms = false;
  // Gemma: stored gains are w - 1, embeddings are scaled by sqrt(D), the activation is GELU, the
  // head size does not follow from D and H, and scores are scaled by query_pre_attn_scalar.
  bool gemma = false;
  bool soft_caps = false;          // scores and logits are capped (Gemma 2)
  bool local_rope = false;         // layers with a window have a RoPE of their own (Gemma 3)
  bool fused_projections = false;  // Phi-3
  MixtureRule mixture = MixtureRule::none;
  RouterScore score = RouterScore::softmax;
  bool correction_bias = false;
  bool normalised = false;   // chosen weights, where the config does not say
  bool shared_gate = false;  // a shared expert with a gate (Qwen2-MoE)
  bool latent = false;       // latent attention, RoPE interleaved
};

[[nodiscard]] std::span<const Family> families();
// Sets what the row alone decides, in files of either format. The configuration has its sizes.
void apply_family(const Family& family, ModelConfig& config);
// nullptr when unknown.
[[nodiscard]] const Family* family_of_hf(std::string_view model_type);
// Of the families that share GGUF's name, the first that has mixtures where `mixture`, and whose
// router scores by `score`.
[[nodiscard]] const Family* family_of_gguf(std::string_view architecture, bool mixture = false,
                                           RouterScore score = RouterScore::softmax);

}  // namespace onset
