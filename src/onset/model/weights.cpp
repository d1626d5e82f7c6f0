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

LatentWeights find_latent(TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  const auto name = [&](TensorNames names) { return finder.layer_name(layer, names); };
  const LatentConfig& latent = config.latent;
  const std::int64_t keys = config.head_dim - latent.rope_dim;
  LatentWeights weights;
  if (latent.query_rank > 0) {
    weights.query_down = finder.linear(name(tensor_names::q_down), latent.query_rank, config.hidden,
                                       config.qkv_bias);
    weights.query_norm = finder.gain(name(tensor_names::q_latent_norm), latent.query_rank, false);
  }
  weights.key_value_down =
      finder.linear(name(tensor_names::kv_down), latent.kv_rank + latent.rope_dim, config.hidden,
                    config.qkv_bias);
  weights.key_value_norm = finder.gain(name(tensor_names::kv_latent_norm), latent.kv_rank, false);
  if (finder.is_gguf() && finder.find(name(tensor_names::kv_up), "weight") == nullptr) {
    weights.key_up =
        finder.stack(name(tensor_names::k_up) + ".weight", config.heads, latent.kv_rank, keys);
    weights.value_up = finder.stack(name(tensor_names::v_up) + ".weight", config.heads,
                                    config.value_dim, latent.kv_rank);
  } else {
    weights.key_value_up = finder.linear(
        name(tensor_names::kv_up), config.heads * (keys + config.value_dim), latent.kv_rank, false);
  }
  return weights;
}

AttentionWeights find_latent_attention(TensorFinder& finder, const ModelConfig& config,
                                       std::int64_t layer) {
  AttentionWeights weights;
  const bool direct = config.latent.query_rank == 0;
  weights.q = finder.linear(finder.layer_name(layer, direct ? tensor_names::q : tensor_names::q_up),
                            config.heads * config.head_dim,
                            direct ? config.hidden : config.latent.query_rank, false);
  weights.o = finder.linear(finder.layer_name(layer, tensor_names::o), config.hidden,
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
    auto parts = finder.divided(name(tensor_names::fused_qkv), std::array{q_size, kv_size, kv_size},
                                config.hidden);
    weights.q = std::move(parts[0]);
    weights.k = std::move(parts[1]);
    weights.v = std::move(parts[2]);
  } else {
    const bool bias = config.qkv_bias;
    weights.q = finder.linear(name(tensor_names::q), q_size, config.hidden, bias, permuted);
    weights.k = finder.linear(name(tensor_names::k), kv_size, config.hidden, bias, permuted);
    weights.v = finder.linear(name(tensor_names::v), kv_size, config.hidden, bias);
  }
  weights.o = finder.linear(name(tensor_names::o), config.hidden, q_size, config.output_bias);
  if (config.qk_norm != QkNorm::none) {
    const bool whole = config.qk_norm == QkNorm::whole;
    weights.q_norm = finder.gain(name(tensor_names::q_norm), whole ? q_size : config.head_dim,
                                 config.norm_plus_one);
    weights.k_norm = finder.gain(name(tensor_names::k_norm), whole ? kv_size : config.head_dim,
                                 config.norm_plus_one);
  }
  return weights;
}

FfnWeights find_dense_ffn(TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  if (!config.fused_projections) {
    return find_ffn(finder, tensor_names::dense, layer, config.ffn, config.hidden, config.ffn_bias);
  }
  auto parts = finder.divided(finder.layer_name(layer, tensor_names::fused_gate_up),
                              std::array{config.ffn, config.ffn}, config.hidden);
  return {.gate = std::move(parts[0]),
          .up = std::move(parts[1]),
          .down = finder.linear(finder.layer_name(layer, tensor_names::dense.down), config.hidden,
                                config.ffn, config.ffn_bias)};
}

LayerWeights find_layer(TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  const auto gain = [&](TensorNames names) {
    return finder.gain(finder.layer_name(layer, names), config.hidden, config.norm_plus_one);
  };
  LayerWeights weights;
  if (config.pre_norms) {
    weights.attn_norm = gain(tensor_names::attn_norm);
    weights.ffn_norm =
        gain(config.post_norms ? tensor_names::sandwiched_ffn_norm : tensor_names::ffn_norm);
  }
  if (config.post_norms) {
    weights.attn_post_norm = gain(tensor_names::attn_post_norm);
    weights.ffn_post_norm = gain(tensor_names::ffn_post_norm);
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
  const at::Tensor up = dense_up(heads, latents.scalar_type()).to(latents.device());
  return at::linear(latents, up.flatten(0, 1));
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
    gains.push_back({.name = weights.gguf ? str_cat("blk.", index, ".", names.gguf, ".weight")
                                          : str_cat(weights.prefix, "layers.", index, ".",
                                                    names.hugging_face, ".weight"),
                     .module = names.hugging_face,
                     .gain = &gain});
  };
  add(tensor_names::attn_norm, layer.attn_norm);
  add(tensor_names::attn_post_norm, layer.attn_post_norm);
  add(config.post_norms && config.pre_norms ? tensor_names::sandwiched_ffn_norm
                                            : tensor_names::ffn_norm,
      layer.ffn_norm);
  add(tensor_names::ffn_post_norm, layer.ffn_post_norm);
  add(tensor_names::q_norm, layer.attention.q_norm);
  add(tensor_names::k_norm, layer.attention.k_norm);
  if (layer.attention.latent) {
    add(tensor_names::q_latent_norm, layer.attention.latent->query_norm);
    add(tensor_names::kv_latent_norm, layer.attention.latent->key_value_norm);
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
  const std::string beyond =
      finder.layer_name(config.layer_count() + config.extra_layers, tensor_names::o);
  require_input(finder.find(beyond, "weight") == nullptr, checkpoint.path().string(), ": holds ",
                beyond, ".weight, but the configuration has ", config.layer_count(), " layers");
  weights.final_norm = finder.gain(finder.final_norm_name(), config.hidden, config.norm_plus_one);
  find_head(finder, checkpoint, config, compute, log, weights);
  return weights;
}

}  // namespace onset
