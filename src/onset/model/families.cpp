#include "onset/model/families.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace onset {
namespace {

constexpr std::array<Family, 13> table{{
    {.name = "llama",
     .gguf = "llama",
     .examples = "Llama 1 to 3.x, SmolLM2, DeepSeek distills",
     .causal_lm = "LlamaForCausalLM",
     .gguf_permuted_qk = true},
    {.name = "mistral",
     .gguf = "mistral",
     .examples = "Mistral",
     .causal_lm = "MistralForCausalLM",
     .gguf_permuted_qk = true,
     .window = WindowRule::all},
    {.name = "qwen2",
     .gguf = "qwen2",
     .examples = "Qwen2, Qwen2.5, DeepSeek distills",
     .causal_lm = "Qwen2ForCausalLM",
     .qkv_bias = true,
     .window = WindowRule::opt_in},
    {.name = "qwen3",
     .gguf = "qwen3",
     .examples = "Qwen3",
     .causal_lm = "Qwen3ForCausalLM",
     .qk_norm = QkNorm::per_head,
     .window = WindowRule::opt_in},
    {.name = "mixtral",
     .gguf = "llama",
     .examples = "Mixtral",
     .causal_lm = "MixtralForCausalLM",
     .gguf_permuted_qk = true,
     .window = WindowRule::all,
     .mixture = MixtureRule::every_layer,
     .normalised = true},
    {.name = "qwen2_moe",
     .gguf = "qwen2moe",
     .examples = "Qwen1.5-MoE, Qwen2-MoE",
     .causal_lm = "Qwen2MoeForCausalLM",
     .qkv_bias = true,
     .window = WindowRule::opt_in_even,
     .mixture = MixtureRule::qwen,
     .shared_gate = true},
    {.name = "qwen3_moe",
     .gguf = "qwen3moe",
     .examples = "Qwen3-MoE",
     .causal_lm = "Qwen3MoeForCausalLM",
     .qk_norm = QkNorm::per_head,
     .window = WindowRule::opt_in_all,
     .mixture = MixtureRule::qwen,
     .normalised = true},
    {.name = "deepseek_v2",
     .gguf = "deepseek2",
     .examples = "DeepSeek-V2, V2-Lite",
     .causal_lm = "DeepseekV2ForCausalLM",
     .mixture = MixtureRule::deepseek,
     .latent = true},
    {.name = "deepseek_v3",
     .gguf = "deepseek2",
     .examples = "DeepSeek-V3, R1",
     .causal_lm = "DeepseekV3ForCausalLM",
     .mixture = MixtureRule::deepseek,
     .score = RouterScore::sigmoid,
     .correction_bias = true,
     .normalised = true,
     .latent = true},
    {.name = "phi3",
     .gguf = "phi3",
     .examples = "Phi-3, Phi-3.5, Phi-4",
     .causal_lm = "Phi3ForCausalLM",
     .window = WindowRule::all,
     .fused_projections = true},
    {.name = "gemma2",
     .gguf = "gemma2",
     .examples = "Gemma 2",
     .causal_lm = "Gemma2ForCausalLM",
     .tied_by_default = true,
     .window = WindowRule::alternating,
     .post_norms = true,
     .gemma = true,
     .soft_caps = true},
    {.name = "gemma3_text",
     .gguf = "gemma3",
     .examples = "Gemma 3",
     .causal_lm = "Gemma3ForCausalLM",
     .qk_norm = QkNorm::per_head,
     .tied_by_default = true,
     .window = WindowRule::pattern,
     .post_norms = true,
     .gemma = true,
     .local_rope = true},
    {.name = "olmo2",
     .gguf = "olmo2",
     .examples = "OLMo 2",
     .causal_lm = "Olmo2ForCausalLM",
     .qk_norm = QkNorm::whole,
     .pre_norms = false,
     .post_norms = true},
}};

template <typename Matches>
const Family* find_family(const Matches& matches) {
  const auto found = std::find_if(table.begin(), table.end(), matches);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Family> families() { return table; }

void apply_family(const Family& family, ModelConfig& config) {
  config.architecture = family.name;
  config.qkv_bias = family.qkv_bias;
  config.qk_norm = family.qk_norm;
  config.pre_norms = family.pre_norms;
  config.post_norms = family.post_norms;
  config.fused_projections = family.fused_projections;
  config.interleaved_rope = family.latent;
  config.mixture.score = family.score;
  config.mixture.correction_bias = family.correction_bias;
  config.mixture.shared_gate = family.shared_gate;
  config.attention_scale = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  if (!family.gemma) return;
  config.activation = Activation::gelu_tanh;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
}

const Family* family_of_hf(std::string_view model_type) {
  return find_family([&](const Family& family) { return family.name == model_type; });
}

const Family* family_of_gguf(std::string_view architecture, bool mixture, RouterScore score) {
  const Family* exact = find_family([&](const Family& family) {
    return family.gguf == architecture && (family.mixture != MixtureRule::none) == mixture &&
           family.score == score;
  });
  if (exact != nullptr) return exact;
  return find_family([&](const Family& family) { return family.gguf == architecture; });
}

std::string supported_architectures() {
  std::string list;
  for (const Family& family : table) {
    list.append(list.empty() ? "" : ", ").append(family.name);
    list.append(" (").append(family.examples).append(")");
  }
  return list;
}

}  // namespace onset
