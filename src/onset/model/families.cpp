#include "onset/model/families.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace onset {
namespace {

constexpr std::array<Family, 8> table{{
    {.name = "llama",
     .gguf = "llama",
     .examples = "Llama 1 to 3.x, SmolLM2, DeepSeek distills",
     .gguf_permuted_qk = true},
    {.name = "mistral",
     .gguf = "mistral",
     .examples = "Mistral",
     .gguf_permuted_qk = true,
     .window = WindowRule::all},
    {.name = "qwen2",
     .gguf = "qwen2",
     .examples = "Qwen2, Qwen2.5, DeepSeek distills",
     .qkv_bias = true,
     .window = WindowRule::opt_in},
    {.name = "qwen3",
     .gguf = "qwen3",
     .examples = "Qwen3",
     .qk_norm = QkNorm::per_head,
     .window = WindowRule::opt_in},
    {.name = "phi3",
     .gguf = "phi3",
     .examples = "Phi-3, Phi-3.5, Phi-4",
     .window = WindowRule::all,
     .fused_projections = true},
    {.name = "gemma2",
     .gguf = "gemma2",
     .examples = "Gemma 2",
     .tied_by_default = true,
     .window = WindowRule::alternating,
     .post_norms = true,
     .gemma = true,
     .soft_caps = true},
    {.name = "gemma3_text",
     .gguf = "gemma3",
     .examples = "Gemma 3",
     .qk_norm = QkNorm::per_head,
     .tied_by_default = true,
     .window = WindowRule::pattern,
     .post_norms = true,
     .gemma = true,
     .local_rope = true},
    {.name = "olmo2",
     .gguf = "olmo2",
     .examples = "OLMo 2",
     .qk_norm = QkNorm::whole,
     .pre_norms = false,
     .post_norms = true},
}};

template <typename Member>
const Family* find_family(Member member, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Family& family) { return family.*member == name; });
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
  config.attention_scale = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  if (!family.gemma) return;
  config.activation = Activation::gelu_tanh;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
}

const Family* family_of_hf(std::string_view model_type) {
  return find_family(&Family::name, model_type);
}

const Family* family_of_gguf(std::string_view architecture) {
  return find_family(&Family::gguf, architecture);
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
