#include "onset/model/config.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/model/config_readers.h"
#include "onset/model/families.h"

namespace onset {
namespace {

// Above these a configuration is taken for damaged rather than large; they also keep products of
// sizes far from overflow.
constexpr std::int64_t max_layers = 10'000;
constexpr std::int64_t max_width = std::int64_t{1} << 26;

void check_size(const std::string& where, std::string_view what, std::int64_t value,
                std::int64_t limit) {
  require_input(value >= 1 && value <= limit, where, ": ", what, " is ", value, ", expected 1 to ",
                limit);
}

void check_factors(const RopeConfig& rope, std::string_view name,
                   const std::vector<double>& factors, const std::string& where) {
  require_input(factors.size() == static_cast<std::size_t>(rope.rotary_dim / 2), where, ": RoPE ",
                name, " has ", factors.size(), " numbers, expected ", rope.rotary_dim / 2);
  for (const double factor : factors) {
    require_input(std::isfinite(factor) && factor > 0, where, ": RoPE ", name, " holds ", factor,
                  ", expected positive numbers");
  }
}

void check_rope(const RopeConfig& rope, const ModelConfig& config, const std::string& where) {
  // Far beyond anything in use; outside, frequencies underflow or are all one.
  require_input(rope.theta > 1 && rope.theta <= 1e15, where, ": rope_theta is ", rope.theta,
                ", expected above 1, up to 1e15");
  require_input(rope.factor >= 1e-3 && rope.factor <= 1e6, where, ": the RoPE factor is ",
                rope.factor, ", expected 0.001 to 1e6");
  const double factor = rope.attention_factor.value_or(1.0);
  require_input(factor > 0 && factor <= 1e3, where, ": the RoPE attention_factor is ", factor,
                ", expected above 0, up to 1000");
  if (rope.kind == RopeKind::yarn) {
    require_input(rope.beta_slow > 0 && rope.beta_fast >= rope.beta_slow && rope.beta_fast <= 1e6,
                  where, ": RoPE beta_fast ", rope.beta_fast, " and beta_slow ", rope.beta_slow,
                  ", expected 0 < slow <= fast");
  }
  require_input(
      rope.rotary_dim >= 2 && rope.rotary_dim % 2 == 0 && rope.rotary_dim <= config.head_dim, where,
      ": RoPE turns ", rope.rotary_dim, " of a head's ", config.head_dim,
      " dims, expected an even number up to the head size");
  if (rope.kind == RopeKind::longrope) {
    check_factors(rope, "short_factor", rope.short_factors, where);
    check_factors(rope, "long_factor", rope.long_factors, where);
  }
  if (rope.kind == RopeKind::llama3 || rope.kind == RopeKind::yarn ||
      rope.kind == RopeKind::longrope) {
    require_input(rope.original_context >= 1, where,
                  ": the RoPE scaling needs original_max_position_embeddings");
  }
  if (rope.kind == RopeKind::llama3) {
    require_input(rope.low_freq_factor > 0 && rope.high_freq_factor > rope.low_freq_factor, where,
                  ": RoPE low_freq_factor ", rope.low_freq_factor, " and high_freq_factor ",
                  rope.high_freq_factor, ", expected 0 < low < high");
  }
}

void check_mixture(const MixtureConfig& mixture, const std::string& where) {
  constexpr std::int64_t max_experts = 65'536;
  check_size(where, "the number of experts", mixture.experts, max_experts);
  check_size(where, "the number of experts a token is sent to", mixture.chosen, mixture.experts);
  check_size(where, "the experts' FFN size", mixture.ffn, max_width);
  require_input(mixture.shared_ffn >= 0 && mixture.shared_ffn <= max_width, where,
                ": the shared expert's FFN size is ", mixture.shared_ffn);
  require_input(mixture.groups >= 1 && mixture.experts % mixture.groups == 0, where, ": ",
                mixture.experts, " experts do not divide into ", mixture.groups, " groups");
  check_size(where, "the number of chosen groups", mixture.chosen_groups, mixture.groups);
  require_input(mixture.chosen <= mixture.chosen_groups * (mixture.experts / mixture.groups), where,
                ": ", mixture.chosen_groups, " groups of ", mixture.experts / mixture.groups,
                " experts do not hold the ", mixture.chosen, " that a token is sent to");
  require_input(std::isfinite(mixture.scale) && mixture.scale > 0, where,
                ": the experts' weights are scaled by ", mixture.scale,
                ", expected a positive number");
}

void check_latent(const ModelConfig& config, const std::string& where) {
  const LatentConfig& latent = config.latent;
  check_size(where, "the rank of the key-value latent", latent.kv_rank, max_width);
  require_input(latent.query_rank >= 0 && latent.query_rank <= max_width, where,
                ": the rank of the query latent is ", latent.query_rank);
  check_size(where, "the rotated part of a head", latent.rope_dim, config.head_dim - 1);
  for (const double scale : {config.ropes.front().mscale, config.ropes.front().mscale_all_dim}) {
    require_input(std::isfinite(scale) && scale >= 0 && scale <= 1e3, where, ": a RoPE mscale is ",
                  scale, ", expected 0 to 1000");
  }
}

void check(const ModelConfig& config, const std::string& where) {
  check_size(where, "the hidden size", config.hidden, max_width);
  check_size(where, "the number of layers", config.layer_count(), max_layers);
  check_size(where, "the number of heads", config.heads, max_width);
  check_size(where, "the number of key-value heads", config.kv_heads, config.heads);
  check_size(where, "the head size", config.head_dim, max_width);
  const bool all_mixtures = std::all_of(config.layers.begin(), config.layers.end(),
                                        [](const LayerConfig& layer) { return layer.mixture; });
  if (!all_mixtures) check_size(where, "the FFN size", config.ffn, max_width);
  if (config.mixture.experts != 0) check_mixture(config.mixture, where);
  check_size(where, "the value head size", config.value_dim, max_width);
  if (config.has_latent_attention()) check_latent(config, where);
  check_size(where, "the vocabulary size", config.vocabulary, max_width);
  require_input(config.heads % config.kv_heads == 0, where, ": ", config.heads,
                " heads do not divide among ", config.kv_heads, " key-value heads");
  require_input(config.norm_eps >= 0 && config.norm_eps <= 1, where, ": the norm's epsilon is ",
                config.norm_eps, ", expected 0 to 1");
  require_input(config.extra_layers >= 0 && config.extra_layers <= max_layers, where,
                ": the number of layers for further tokens is ", config.extra_layers);
  require_input(config.context >= 0, where, ": the context length is ", config.context,
                ", expected at least 1");
  for (const RopeConfig& rope : config.ropes) check_rope(rope, config, where);
  for (const double cap : {config.attention_softcap, config.logit_softcap}) {
    require_input(std::isfinite(cap) && cap >= 0, where, ": a soft cap is ", cap,
                  ", expected a positive number");
  }
  require_input(std::isfinite(config.attention_scale) && config.attention_scale > 0, where,
                ": attention scores are scaled by ", config.attention_scale,
                ", expected a positive number");
}

}  // namespace

ModelConfig read_config(const Checkpoint& checkpoint) {
  const bool gguf = checkpoint.format() == CheckpointFormat::gguf;
  const std::string where =
      gguf ? checkpoint.path().string() : (checkpoint.path() / "config.json").string();
  ModelConfig config =
      gguf ? read_gguf_config(checkpoint, where) : read_hf_config(checkpoint, where);
  check(config, where);
  return config;
}

std::optional<std::string> wemask_obstacle(const ModelConfig& config) {
  if (config.pre_norms) return std::nullopt;
  return config.architecture + " has no norm before attention whose gain could choose dims";
}

std::int64_t parameter_count(const Checkpoint& checkpoint) {
  std::int64_t count = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const bool rope_table =
        tensor.name == "rope_freqs.weight" || tensor.name.ends_with("rotary_emb.inv_freq");
    if (!rope_table) count += tensor.elements();
  }
  return count;
}

}  // namespace onset
