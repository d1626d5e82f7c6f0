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
  // yarn as DeepSeek uses it: with both set the default is m(mscale) / m(mscale_all_dim), where
  // m(x) = 0.1 x ln(factor) + 1; the second also scales the scores (attention_scale, squared).
  double mscale = 0.0;
  double mscale_all_dim = 0.0;
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
  bool mixture = false;  // its FFN is a mixture of experts
};

enum class RouterScore { softmax, sigmoid };

// How the routers of mixture layers choose, and how large the experts are. A router gives each
// expert a score, the softmax or the sigmoid of its logit; the `chosen` experts with the largest
// ones run (ties: the lower index), each weighted with its score.
struct MixtureConfig {
  std::int64_t experts = 0;     // E; 0: the model has no mixtures
  std::int64_t chosen = 0;      // experts a token is sent to
  std::int64_t ffn = 0;         // inner size of an expert
  std::int64_t shared_ffn = 0;  // inner size of what every token goes through besides; 0: none
  bool shared_gate = false;     // the shared output times sigmoid(x . w) (Qwen2-MoE)
  RouterScore score = RouterScore::softmax;
  bool correction_bias = false;  // a bias of the scores that counts for the choice alone (V3)
  // Only the experts of the best `chosen_groups` of `groups` equal groups can be chosen. A group is
  // as good as its best expert (softmax, DeepSeek-V2) or its two best together (sigmoid, V3).
  std::int64_t groups = 1;
  std::int64_t chosen_groups = 1;
  bool normalised = false;  // the chosen weights are divided by their sum
  double scale = 1.0;       // times the weights
};

// Multi-head latent attention (DeepSeek-V2, 2405.04434): keys and values of all heads are made from
// one normed latent a token, beside one rotated key part that the heads share.
struct LatentConfig {
  std::int64_t query_rank = 0;  // 0: queries are made from the input directly
  std::int64_t kv_rank = 0;     // 0: not latent attention
  std::int64_t rope_dim =
      0;                   // of each query and key head, the last dims; the others are not turned
  double norm_eps = 1e-6;  // of the latents' norms, whatever the other norms have
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
  std::int64_t head_dim = 0;    // K, of queries and keys
  std::int64_t value_dim = 0;   // of values; K but for latent attention
  std::int64_t ffn = 0;         // F, of layers that are not mixtures; 0 where there are none
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
  // RoPE turns dims 2i and 2i + 1 of the stored order together (DeepSeek).
  bool interleaved_rope = false;
  MixtureConfig mixture;
  LatentConfig latent;
  // Layers behind the L that predict further tokens (DeepSeek-V3's MTP); they are left alone.
  std::int64_t extra_layers = 0;
  std::vector<RopeConfig> ropes = std::vector<RopeConfig>(1);
  std::vector<LayerConfig> layers;  // L rows
  std::vector<std::int64_t> eos;    // ids that end generation; may be empty
  std::optional<std::int64_t> bos;

  [[nodiscard]] std::int64_t layer_count() const {
    return static_cast<std::int64_t>(layers.size());
  }
  [[nodiscard]] bool is_mixture(std::int64_t layer) const {
    return layers[static_cast<std::size_t>(layer)].mixture;
  }
  [[nodiscard]] bool has_latent_attention() const { return latent.kv_rank > 0; }
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
