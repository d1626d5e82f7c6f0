// What distinguishes the families: one row of data per model, read from config.json or from GGUF
// metadata. The forward pass knows no family by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/checkpoint/checkpoint.h"

namespace onset {

enum class Activation { silu, gelu_tanh, gelu };

enum class RopeKind { plain, linear, llama3, yarn, longrope };

// Rotary position embedding. The inverse frequencies are theta^(-2i/rotary_dim), then changed as
// the kind says.
struct RopeConfig {
  RopeKind kind = RopeKind::plain;
  double theta = 10000.0;
  std::int64_t rotary_dim = 0;  // leading dims of each head that are rotated
  double factor = 1.0;
  // llama3: wavelength bands ("Llama 3.1" model card; HF `rope_type: llama3`).
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  // llama3, yarn and longrope: the context length before stretching.
  std::int64_t original_context = 0;
  // yarn (Peng et al. 2309.00071).
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  // yarn and longrope: times cos and sin. Default for yarn 0.1 ln(factor) + 1, for longrope
  // sqrt(1 + ln(factor) / ln(original_context)), each 1 for a factor up to 1.
  std::optional<double> attention_factor = std::nullopt;
  bool truncate = true;  // whether yarn's band limits are rounded to whole dims
  // longrope (Ding et al. 2402.13753): each inverse frequency is divided by its factor, by the long
  // ones for a sequence longer than original_context.
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // GGUF's rope_freqs.weight: each inverse frequency is divided by its entry. Set on loading.
  std::vector<double> frequency_divisors = {};
};

struct LayerConfig {
  // A query sees this many keys, itself included; 0: all.
  std::int64_t sliding_window = 0;
  std::size_t rope = 0;  // index into ModelConfig::ropes
};

enum class QkNorm {
  none,
  per_head,  // RMSNorm of each head over K (Qwen3, Gemma 3)
  whole,     // RMSNorm over all heads at once (OLMo 2)
};

struct ModelConfig {
  std::string architecture;     // our name of the family: "llama", "gemma3_text"
  std::int64_t hidden = 0;      // D
  std::int64_t heads = 0;       // H
  std::int64_t kv_heads = 0;    // G
  std::int64_t head_dim = 0;    // K
  std::int64_t ffn = 0;         // F
  std::int64_t vocabulary = 0;  // V
  std::int64_t context = 0;     // positions the model was trained for; 0: not said
  double norm_eps = 1e-6;
  Activation activation = Activation::silu;
  bool tied_embeddings = false;  // as the configuration says; loading goes by the tensors
  bool qkv_bias = false;
  bool output_bias = false;  // of o_proj
  bool ffn_bias = false;
  QkNorm qk_norm = QkNorm::none;   // of q and k, before RoPE
  bool pre_norms = true;           // a norm before attention and before the FFN
  bool post_norms = false;         // a norm after each, on what is added to the stream
  bool norm_plus_one = false;      // stored gains are w - 1 (Gemma in Hugging Face files)
  bool fused_projections = false;  // qkv and gate-up stored as one matrix each (Phi-3)
  double embedding_scale = 1.0;    // times the token embeddings
  double attention_scale = 0.0;    // times q k^T
  double attention_softcap = 0.0;  // c tanh(x / c) of the scores; 0: none
  double logit_softcap = 0.0;      // the same of the logits
  // GGUF files of this family hold the rows of Q and K permuted per head (llama, mistral).
  bool gguf_permuted_qk = false;
  std::vector<RopeConfig> ropes = std::vector<RopeConfig>(1);
  std::vector<LayerConfig> layers;  // L rows
  std::vector<std::int64_t> eos;    // ids that end generation; may be empty
  std::optional<std::int64_t> bos;

  [[nodiscard]] std::int64_t layer_count() const {
    return static_cast<std::int64_t>(layers.size());
  }
};

// Families that load, for messages and help.
[[nodiscard]] std::string supported_architectures();

// Reads and checks the configuration. Throws an input error that names the file, the key, what was
// expected and found; an unknown architecture lists the supported ones.
[[nodiscard]] ModelConfig read_config(const Checkpoint& checkpoint);

// Why WeMask, which masks the output of the norm before attention by that norm's gain, cannot be
// applied to the model; nothing where it can.
[[nodiscard]] std::optional<std::string> wemask_obstacle(const ModelConfig& config);

// Parameters by the tensors of the checkpoint; tied heads count once.
[[nodiscard]] std::int64_t parameter_count(const Checkpoint& checkpoint);

}  // namespace onset
