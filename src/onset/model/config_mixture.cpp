// The keys of mixtures of experts and of latent attention, in config.json and in GGUF.
#include <algorithm>
#include <cmath>
#include <string>

#include "onset/model/config_readers.h"

namespace onset {
namespace {

// Sizes that are added or multiplied before the whole is checked.
std::int64_t bounded(std::int64_t size, std::string_view what, const std::string& where) {
  constexpr std::int64_t limit = std::int64_t{1} << 26;
  require_input(size >= 0 && size <= limit, where, ": ", what, " is ", size, ", expected 0 to ",
                limit);
  return size;
}

// Without this rank the model would look like one with plain attention.
void require_rank(const LatentConfig& latent, const std::string& where) {
  require_input(latent.kv_rank >= 1, where, ": the rank of the key-value latent is ",
                latent.kv_rank, ", expected at least 1");
}

// Which layers of a Qwen mixture are: every `decoder_sparse_step`-th but those of
// `mlp_only_layers`.
void choose_qwen_layers(const ConfigReader& reader, ModelConfig& config) {
  const std::int64_t step = reader.integer("decoder_sparse_step", 1);
  require_input(step >= 1, reader.where(), ": decoder_sparse_step is ", step,
                ", expected at least 1");
  for (std::int64_t l = 0; l < config.layer_count(); ++l) {
    config.layers[static_cast<std::size_t>(l)].mixture = (l + 1) % step == 0;
  }
  const Json* dense = reader.child("mlp_only_layers");
  if (dense == nullptr) return;
  require_input(dense->is_array(), reader.where(), ": mlp_only_layers should be a list of layers");
  for (const Json& layer : *dense) {
    require_input(layer.is_number_integer(), reader.where(),
                  ": mlp_only_layers should be a list of layers");
    const auto index = layer.get<std::int64_t>();
    // transformers passes over numbers of layers that the model does not have
    if (index >= 0 && index < config.layer_count()) {
      config.layers[static_cast<std::size_t>(index)].mixture = false;
    }
  }
}

void choose_deepseek_layers(const ConfigReader& reader, bool v3, ModelConfig& config) {
  const std::int64_t first = reader.integer("first_k_dense_replace", v3 ? 3 : 0);
  const std::int64_t step = reader.integer("moe_layer_freq", 1);
  require_input(step >= 1, reader.where(), ": moe_layer_freq is ", step, ", expected at least 1");
  for (std::int64_t l = 0; l < config.layer_count(); ++l) {
    config.layers[static_cast<std::size_t>(l)].mixture = l >= first && l % step == 0;
  }
}

void read_deepseek_routing(const ConfigReader& reader, const Family& family,
                           MixtureConfig& mixture) {
  const bool v3 = family.score == RouterScore::sigmoid;
  const std::string score = reader.text("scoring_func").value_or(v3 ? "sigmoid" : "softmax");
  require_input(score == (v3 ? "sigmoid" : "softmax"), reader.where(), ": scoring_func \"", score,
                "\" is not known for ", family.name);
  const std::string method = reader.text("topk_method").value_or(v3 ? "noaux_tc" : "greedy");
  const bool grouped = method == (v3 ? "noaux_tc" : "group_limited_greedy");
  require_input(grouped || (!v3 && method == "greedy"), reader.where(), ": topk_method \"", method,
                "\" is not known for ", family.name);
  if (grouped) {
    mixture.groups = reader.integer("n_group", v3 ? 8 : 1);
    mixture.chosen_groups = reader.integer("topk_group", v3 ? 4 : mixture.groups);
  }
  mixture.scale = reader.number("routed_scaling_factor", v3 ? 2.5 : 1.0);
  // V2's own code and transformers never normalise together with the scale.
  mixture.normalised = v3 && reader.boolean("norm_topk_prob", family.normalised);
}

// A size by the shape of a tensor, for files that do not say it; 0 where no layer has the tensor.
std::int64_t size_by_tensor(const Checkpoint& checkpoint, const ModelConfig& config,
                            const std::string& name, std::size_t dims) {
  for (std::int64_t l = 0; l < config.layer_count(); ++l) {
    const TensorInfo* tensor = checkpoint.find(str_cat("blk.", l, ".", name, ".weight"));
    if (tensor != nullptr && tensor->shape.size() == dims) return tensor->shape[dims - 2];
  }
  return 0;
}

// Older files of DeepSeek-V2 and -V3 have no keys for the groups, which follow from the model.
std::int64_t known_groups(const Family& family, std::int64_t experts) {
  const bool v3 = family.score == RouterScore::sigmoid;
  return family.latent && experts == (v3 ? 256 : 160) ? 8 : 1;
}

}  // namespace

void read_hf_mixture(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  MixtureConfig& mixture = config.mixture;
  switch (family.mixture) {
    case MixtureRule::none:
      return;
    case MixtureRule::every_layer:
      mixture.experts = reader.integer("num_local_experts");
      require_input(mixture.experts >= 1, reader.where(), ": the number of experts is ",
                    mixture.experts, ", expected at least 1");
      mixture.ffn = config.ffn;
      mixture.normalised = family.normalised;
      for (LayerConfig& layer : config.layers) layer.mixture = true;
      break;
    case MixtureRule::qwen:
      mixture.experts = reader.integer("num_experts", reader.integer("num_local_experts", -1));
      require_input(mixture.experts >= 0, reader.where(), ": key \"num_experts\" is missing");
      if (mixture.experts == 0) return;  // every layer is dense
      mixture.ffn = reader.integer("moe_intermediate_size");
      mixture.normalised = reader.boolean("norm_topk_prob", false);
      if (mixture.shared_gate)
        mixture.shared_ffn = reader.integer("shared_expert_intermediate_size");
      choose_qwen_layers(reader, config);
      break;
    case MixtureRule::deepseek:
      mixture.experts = reader.integer("n_routed_experts", 0);
      if (mixture.experts == 0) return;
      mixture.ffn =
          bounded(reader.integer("moe_intermediate_size"), "moe_intermediate_size", reader.where());
      mixture.shared_ffn = mixture.ffn * bounded(reader.integer("n_shared_experts", 0),
                                                 "n_shared_experts", reader.where());
      read_deepseek_routing(reader, family, mixture);
      choose_deepseek_layers(reader, family.score == RouterScore::sigmoid, config);
      break;
  }
  mixture.chosen = reader.integer("num_experts_per_tok");
}

void read_gguf_mixture(const GgufMetadata& metadata, const Checkpoint& checkpoint,
                       const Family& family, ModelConfig& config) {
  if (family.mixture == MixtureRule::none) return;
  MixtureConfig& mixture = config.mixture;
  mixture.experts = metadata.integer("expert_count", 0);
  if (mixture.experts == 0) return;
  mixture.chosen = metadata.integer("expert_used_count");
  mixture.ffn = metadata.integer("expert_feed_forward_length", 0);
  if (mixture.ffn == 0) mixture.ffn = size_by_tensor(checkpoint, config, "ffn_gate_exps", 3);
  if (mixture.ffn == 0) mixture.ffn = config.ffn;
  mixture.shared_ffn = metadata.integer("expert_shared_feed_forward_length", 0);
  if (mixture.shared_ffn == 0) {
    mixture.shared_ffn = size_by_tensor(checkpoint, config, "ffn_gate_shexp", 2);
  }
  mixture.normalised = metadata.boolean("expert_weights_norm", family.normalised);
  const double scale = metadata.number("expert_weights_scale", 1.0);
  mixture.scale = scale == 0.0 ? 1.0 : scale;  // 0 is how some files say "not scaled"
  const std::int64_t groups = known_groups(family, mixture.experts);
  const std::int64_t chosen_groups = family.score == RouterScore::sigmoid ? 4 : 3;
  mixture.groups = metadata.integer("expert_group_count", groups);
  mixture.chosen_groups =
      metadata.integer("expert_group_used_count", groups > 1 ? chosen_groups : mixture.groups);
  for (std::int64_t l = 0; l < config.layer_count(); ++l) {
    config.layers[static_cast<std::size_t>(l)].mixture =
        checkpoint.find(str_cat("blk.", l, ".ffn_gate_inp.weight")) != nullptr;
  }
}

void read_hf_latent(const ConfigReader& reader, ModelConfig& config) {
  LatentConfig& latent = config.latent;
  latent.query_rank = reader.integer("q_lora_rank", 0);
  latent.kv_rank = reader.integer("kv_lora_rank");
  require_rank(latent, reader.where());
  latent.rope_dim = bounded(reader.integer("qk_rope_head_dim"), "qk_rope_head_dim", reader.where());
  config.head_dim =
      bounded(reader.integer("qk_nope_head_dim"), "qk_nope_head_dim", reader.where()) +
      latent.rope_dim;
  config.value_dim = reader.integer("v_head_dim");
  config.kv_heads = config.heads;
}

void read_gguf_latent(const GgufMetadata& metadata, ModelConfig& config) {
  LatentConfig& latent = config.latent;
  latent.query_rank = metadata.integer("attention.q_lora_rank", 0);
  latent.kv_rank = metadata.integer("attention.kv_lora_rank");
  require_rank(latent, metadata.where());
  latent.rope_dim = metadata.integer("rope.dimension_count");
  // Newer files give the sizes as latent attention sees them under the plain keys, and these apart.
  config.head_dim =
      metadata.integer("attention.key_length_mla", metadata.integer("attention.key_length"));
  config.value_dim =
      metadata.integer("attention.value_length_mla", metadata.integer("attention.value_length"));
  config.kv_heads = config.heads;
}

void apply_latent_scale(ModelConfig& config) {
  if (!config.has_latent_attention()) return;
  const RopeConfig& rope = config.ropes.front();
  if (rope.kind == RopeKind::plain || rope.factor <= 1.0) return;
  const double stretch = 0.1 * rope.mscale_all_dim * std::log(rope.factor) + 1.0;
  config.attention_scale *= stretch * stretch;
}

}  // namespace onset
