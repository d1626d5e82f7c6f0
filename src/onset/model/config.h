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

enum class RopeKind { plain, linear, llama3, yarn };

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
  // llama3 and yarn: the context length before stretching.
  std::int64_t original_context = 0;
  // yarn (Peng et al. 2309.00071).
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  std::optional<double> attention_factor =
      std::nullopt;      // times cos and sin; default 0.1 ln(factor) + 1
  bool truncate = true;  // whether yarn's band limits are rounded to whole dims
  // GGUF's rope_freqs.weight: each inverse frequency is divided by its entry. Set on loading.
  std::vector<double> frequency_divisors = {};
};

struct LayerConfig {
  // A query sees this many keys, itself included; 0: all.
  std::int64_t sliding_window = 0;
};

struct ModelConfig {
  std::string architecture;     // "llama", "mistral", "qwen2", "qwen3"
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
  bool qk_norm = false;  // RMSNorm of each head's q and k over K, before RoPE
  // GGUF files of this family hold the rows of Q and K permuted per head (llama, mistral).
  bool gguf_permuted_qk = false;
  RopeConfig rope;
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

// Parameters by the tensors of the checkpoint; tied heads count once.
[[nodiscard]] std::int64_t parameter_count(const Checkpoint& checkpoint);

}  // namespace onset
