#include "onset/model/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "onset/base/error.h"
#include "onset/model/mixture_weights.h"
#include "onset/model/tensor_finder.h"

namespace onset {
namespace {

// Names inside a layer, behind "model.layers.N." and "blk.N.".
constexpr TensorNames attn_norm_name{"input_layernorm", "attn_norm"};
constexpr TensorNames q_name{"self_attn.q_proj", "attn_q"};
constexpr TensorNames k_name{"self_attn.k_proj", "attn_k"};
constexpr TensorNames v_name{"self_attn.v_proj", "attn_v"};
constexpr TensorNames o_name{"self_attn.o_proj", "attn_output"};
constexpr TensorNames q_norm_name{"self_attn.q_norm", "attn_q_norm"};
constexpr TensorNames k_norm_name{"self_attn.k_norm", "attn_k_norm"};
// Hugging Face calls the norm before the FFN "post_attention_layernorm" where there is none on
// attention's output, and "pre_feedforward_layernorm" where there is.
constexpr TensorNames ffn_norm_name{"post_attention_layernorm", "ffn_norm"};
constexpr TensorNames sandwiched_ffn_norm_name{"pre_feedforward_layernorm", "ffn_norm"};
constexpr TensorNames attn_post_norm_name{"post_attention_layernorm", "post_attention_norm"};
constexpr TensorNames ffn_post_norm_name{"post_feedforward_layernorm", "post_ffw_norm"};
constexpr TensorNames q_down_name{"self_attn.q_a_proj", "attn_q_a"};
constexpr TensorNames q_latent_norm_name{"self_attn.q_a_layernorm", "attn_q_a_norm"};
constexpr TensorNames q_up_name{"self_attn.q_b_proj", "attn_q_b"};
constexpr TensorNames kv_down_name{"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"};
constexpr TensorNames kv_latent_norm_name{"self_attn.kv_a_layernorm", "attn_kv_a_norm"};
constexpr TensorNames kv_up_name{"self_attn.kv_b_proj", "attn_kv_b"};
constexpr TensorNames k_up_name{"", "attn_k_b"};  // the halves of the one above, in GGUF alone
constexpr TensorNames v_up_name{"", "attn_v_b"};
constexpr TensorNames fused_qkv_name{"self_attn.qkv_proj", "attn_qkv"};
constexpr TensorNames fused_gate_up_name{"mlp.gate_up_proj", "ffn_up"};
constexpr TensorNames gate_name{"mlp.gate_proj", "ffn_gate"};
constexpr TensorNames up_name{"mlp.up_proj", "ffn_up"};
constexpr TensorNames down_name{"mlp.down_proj", "ffn_down"};
constexpr FfnNames dense_names{gate_name, up_name, down_name};

LatentWeights find_latent(TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  const auto name = [&](TensorNames names) { return finder.layer_name(layer, names); };
  const LatentConfig& latent = config.latent;
  const std::int64_t keys = config.head_dim - latent.rope_dim;
  LatentWeights weights;
  if (latent.query_rank > 0) {
    weights.query_down =
        finder.linear(name(q_down_name), latent.query_rank, config.hidden, config.qkv_bias);
    weights.query_norm = finder.gain(name(q_latent_norm_name), latent.query_rank, false);
  }
  weights.key_value_down = finder.linear(name(kv_down_name), latent.kv_rank + latent.rope_dim,
                                         config.hidden, config.qkv_bias);
  weights.key_value_norm = finder.gain(name(kv_latent_norm_name), latent.kv_rank, false);
  if (finder.is_gguf() && finder.find(name(kv_up_name), "weight") == nullptr) {
    weights.key_up = finder.stack(name(k_up_name) + ".weight", config.heads, latent.kv_rank, keys);
    weights.value_up =
        finder.stack(name(v_up_name) + ".weight", config.heads, config.value_dim, latent.kv_rank);
  } else {
    weights.key_value_up = finder.linear(name(kv_up_name), config.heads * (keys + config.value_dim),
                                         latent.kv_rank, false);
  }
  return weights;
}

AttentionWeights find_latent_attention(TensorFinder& finder, const ModelConfig& config,
                                       std::int64_t layer) {
  AttentionWeights weights;
  const bool direct = config.latent.query_rank == 0;
  weights.q = finder.linear(finder.layer_name(layer, direct ? q_name : q_up_name),
                            config.heads * config.head_dim,
                            direct ? config.hidden : config.latent.query_rank, false);
  weights.o = finder.linear(finder.layer_name(layer, o_name), config.hidden,
                            config.heads * config.value_dim, config.output_bias);
  weights.latent = find_latent(finder, config, layer);
  return weights;
}

AttentionWeights find_attention(TensorFinder& finder, const ModelConfig& config,
                                std::int64_t layer) {
  if (config.has_latent_attention()) return find_latent_attention(finder, config, layer);
  const auto name = [&](TensorNames names) { return finder.layer_name(layer, names); };
  const std::int64_t q_size = config.heads * config.head_dim;
  const std::int64_t kv_size = config.kv_heads * config.head_dim;
  const std::int64_t permuted = config.gguf_permuted_qk ? config.head_dim : 0;
  AttentionWeights weights;
  if (config.fused_projections) {
    auto parts =
        finder.divided(name(fused_qkv_name), std::array{q_size, kv_size, kv_size}, config.hidden);
    weights.q = std::move(parts[0]);
    weights.k = std::move(parts[1]);
    weights.v = std::move(parts[2]);
  } else {
    const bool bias = config.qkv_bias;
    weights.q = finder.linear(name(q_name), q_size, config.hidden, bias, permuted);
    weights.k = finder.linear(name(k_name), kv_size, config.hidden, bias, permuted);
    weights.v = finder.linear(name(v_name), kv_size, config.hidden, bias);
  }
  weights.o = finder.linear(name(o_name), config.hidden, q_size, config.output_bias);
  if (config.qk_norm != QkNorm::none) {
    const bool whole = config.qk_norm == QkNorm::whole;
    weights.q_norm =
        finder.gain(name(q_norm_name), whole ? q_size : config.head_dim, config.norm_plus_one);
    weights.k_norm =
        finder.gain(name(k_norm_name), whole ? kv_size : config.head_dim, config.norm_plus_one);
  }
  return weights;
}

FfnWeights find_dense_ffn(TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  if (!config.fused_projections) {
    return find_ffn(finder, dense_names, layer, config.ffn, config.hidden, config.ffn_bias);
  }
  auto parts = finder.divided(finder.layer_name(layer, fused_gate_up_name),
                              std::array{config.ffn, config.ffn}, config.hidden);
  return {.gate = std::move(parts[0]),
          .up = std::move(parts[1]),
          .down = finder.linear(finder.layer_name(layer, down_name), config.hidden, config.ffn,
                                config.ffn_bias)};
}

LayerWeights find_layer(TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  const auto gain = [&](TensorNames names) {
    return finder.gain(finder.layer_name(layer, names), config.hidden, config.norm_plus_one);
  };
  LayerWeights weights;
  if (config.pre_norms) {
    weights.attn_norm = gain(attn_norm_name);
    weights.ffn_norm = gain(config.post_norms ? sandwiched_ffn_norm_name : ffn_norm_name);
  }
  if (config.post_norms) {
    weights.attn_post_norm = gain(attn_post_norm_name);
    weights.ffn_post_norm = gain(ffn_post_norm_name);
  }
  weights.attention = find_attention(finder, config, layer);
  if (config.is_mixture(layer)) {
    weights.mixture = find_mixture(finder, config, layer);
  } else {
    weights.ffn = find_dense_ffn(finder, config, layer);
  }
  weights.tensors = finder.take_noted();
  if (weights.mixture) weights.mixture->experts = find_experts(finder, config, layer);
  return weights;
}

// Compares all of small matrices, and rows spread over large ones, which would cost a read of
// gigabytes.
bool look_equal(const StoredMatrix& a, const StoredMatrix& b) {
  constexpr std::size_t read_whole = std::size_t{64} << 20;
  constexpr std::int64_t sampled_rows = 256;
  if (a.dtype != b.dtype || a.bytes.size() != b.bytes.size()) return false;
  const auto same = [](std::span<const std::byte> x, std::span<const std::byte> y) {
    return std::memcmp(x.data(), y.data(), x.size()) == 0;
  };
  if (a.bytes.size() <= read_whole) return same(a.bytes, b.bytes);
  for (std::int64_t i = 0; i < sampled_rows; ++i) {
    const std::int64_t row = i * (a.rows - 1) / (sampled_rows - 1);
    if (!same(a.row_range(row, 1), b.row_range(row, 1))) return false;
  }
  return true;
}

void find_head(TensorFinder& finder, const Checkpoint& checkpoint, const ModelConfig& config,
               Compute compute, const Log& log, ModelWeights& weights) {
  if (finder.find(finder.head_name(), "weight") == nullptr) {
    require_input(config.tied_embeddings, checkpoint.path().string(), ": tensor ",
                  finder.head_name(),
                  ".weight is missing, and the configuration does not tie it to the embedding");
    weights.tied = true;
    weights.head = Linear(weights.embedding, {}, compute);
    weights.head.set_origin({.name = finder.embedding_name()});
    return;
  }
  weights.head = finder.linear(finder.head_name(), config.vocabulary, config.hidden, false);
  if (config.tied_embeddings && !look_equal(weights.head.stored(), weights.embedding)) {
    log.warning(str_cat(checkpoint.path().string(),
                        ": the configuration ties the head to the "
                        "embedding, but the file holds another ",
                        finder.head_name(), ".weight, which is used"));
  }
}

}  // namespace

at::Tensor LatentWeights::up(const at::Tensor& latents, std::int64_t heads) const {
  if (key_up.empty()) return key_value_up(latents);
  return at::linear(latents, dense_up(heads, latents.scalar_type()).flatten(0, 1));
}

at::Tensor LatentWeights::dense_up(std::int64_t heads, at::ScalarType type) const {
  if (key_up.empty()) {
    const at::Tensor up = key_value_up.dense(type);
    return up.view({heads, -1, up.size(1)});
  }
  std::vector<at::Tensor> parts;
  for (std::size_t h = 0; h < key_up.size(); ++h) {
    parts.push_back(at::cat({expand(key_up[h], type).t(), expand(value_up[h], type)}, 0));
  }
  return at::stack(parts);
}

std::vector<NamedGain> gains_of(LayerWeights& layer, const ModelConfig& config,
                                const ModelWeights& weights, std::int64_t index) {
  std::vector<NamedGain> gains;
  const auto add = [&](TensorNames names, at::Tensor& gain) {
    if (!gain.defined()) return;
    gains.push_back({weights.gguf ? str_cat("blk.", index, ".", names.gguf, ".weight")
                                  : str_cat(weights.prefix, "layers.", index, ".",
                                            names.hugging_face, ".weight"),
                     &gain});
  };
  add(attn_norm_name, layer.attn_norm);
  add(attn_post_norm_name, layer.attn_post_norm);
  add(config.post_norms && config.pre_norms ? sandwiched_ffn_norm_name : ffn_norm_name,
      layer.ffn_norm);
  add(ffn_post_norm_name, layer.ffn_post_norm);
  add(q_norm_name, layer.attention.q_norm);
  add(k_norm_name, layer.attention.k_norm);
  if (layer.attention.latent) {
    add(q_latent_norm_name, layer.attention.latent->query_norm);
    add(kv_latent_norm_name, layer.attention.latent->key_value_norm);
  }
  return gains;
}

ModelWeights find_weights(const Checkpoint& checkpoint, const ModelConfig& config, Compute compute,
                          const Log& log) {
  TensorFinder finder(checkpoint, compute);
  ModelWeights weights;
  weights.gguf = finder.is_gguf();
  weights.prefix = finder.prefix();
  weights.embedding = finder.matrix(finder.embedding_name(), config.vocabulary, config.hidden);
  finder.take_noted();
  weights.layers.reserve(config.layers.size());
  for (std::int64_t layer = 0; layer < config.layer_count(); ++layer) {
    weights.layers.push_back(find_layer(finder, config, layer));
  }
  const std::string beyond = finder.layer_name(config.layer_count() + config.extra_layers, o_name);
  require_input(finder.find(beyond, "weight") == nullptr, checkpoint.path().string(), ": holds ",
                beyond, ".weight, but the configuration has ", config.layer_count(), " layers");
  weights.final_norm = finder.gain(finder.final_norm_name(), config.hidden, config.norm_plus_one);
  find_head(finder, checkpoint, config, compute, log, weights);
  return weights;
}

}  // namespace onset
