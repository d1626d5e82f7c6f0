#include "onset/model/modules.h"

#include <ATen/ATen.h>

#include <initializer_list>
#include <string_view>

#include "onset/base/error.h"
#include "onset/model/tensor_names.h"

namespace onset {
namespace {

// Before "layers.N."; a base model saved without its head has no "model." in its file.
std::string module_prefix(const ModelWeights& weights) {
  return weights.prefix.empty() ? "model." : weights.prefix;
}

class Lister {
 public:
  Lister(ModelWeights& weights, const ModelConfig& config) : weights_(weights), config_(config) {}

  std::vector<LinearModule> list() {
    for (std::int64_t layer = 0; layer < config_.layer_count(); ++layer) add_layer(layer);
    modules_.push_back({"lm_head", {&weights_.head}, ModuleRole::head});
    return std::move(modules_);
  }

 private:
  void add(std::string_view name, std::initializer_list<Linear*> parts,
           ModuleRole role = ModuleRole::projection) {
    // What the family does not have is an empty layer.
    if ((*parts.begin())->out_features() == 0) return;
    modules_.push_back({str_cat(layer_, name), parts, role});
  }

  void add_layer(std::int64_t index) {
    layer_ = str_cat(module_prefix(weights_), "layers.", index, ".");
    LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
    add_attention(layer.attention);
    if (layer.mixture) {
      add_mixture(*layer.mixture);
    } else if (config_.fused_projections) {
      add(tensor_names::fused_gate_up.hugging_face, {&layer.ffn.gate, &layer.ffn.up});
      add(tensor_names::dense.down.hugging_face, {&layer.ffn.down});
    } else {
      add_ffn(layer.ffn, tensor_names::dense);
    }
  }

  void add_attention(AttentionWeights& attention) {
    if (attention.latent) {
      const bool direct = config_.latent.query_rank == 0;
      LatentWeights& latent = *attention.latent;
      add(tensor_names::q_down.hugging_face, {&latent.query_down});
      add((direct ? tensor_names::q : tensor_names::q_up).hugging_face, {&attention.q});
      add(tensor_names::kv_down.hugging_face, {&latent.key_value_down});
      add(tensor_names::kv_up.hugging_face, {&latent.key_value_up});
    } else if (config_.fused_projections) {
      add(tensor_names::fused_qkv.hugging_face, {&attention.q, &attention.k, &attention.v});
    } else {
      add(tensor_names::q.hugging_face, {&attention.q});
      add(tensor_names::k.hugging_face, {&attention.k});
      add(tensor_names::v.hugging_face, {&attention.v});
    }
    add(tensor_names::o.hugging_face, {&attention.o});
  }

  void add_ffn(FfnWeights& ffn, const FfnNames& names) {
    add(names.gate.hugging_face, {&ffn.gate});
    add(names.up.hugging_face, {&ffn.up});
    add(names.down.hugging_face, {&ffn.down});
  }

  void add_mixture(MixtureWeights& mixture) {
    const bool mixtral = names_mixtral_block(mixture);
    const std::string_view block =
        mixtral ? tensor_names::mixtral_block : tensor_names::common_block;
    add(str_cat(block, ".gate"), {&mixture.router}, ModuleRole::router);
    for (std::size_t e = 0; e < mixture.experts.size(); ++e) {
      FfnWeights& expert = mixture.experts[e];
      const std::string name = str_cat(block, ".experts.", e, ".");
      add(name + (mixtral ? "w1" : "gate_proj"), {&expert.gate});
      add(name + (mixtral ? "w3" : "up_proj"), {&expert.up});
      add(name + (mixtral ? "w2" : "down_proj"), {&expert.down});
    }
    if (!mixture.shared) return;
    add_ffn(*mixture.shared, config_.mixture.shared_gate ? tensor_names::qwen_shared
                                                         : tensor_names::deepseek_shared);
    add(tensor_names::shared_gate.hugging_face, {&mixture.shared_gate});
  }

  // Newer files of Mixtral call the block like all others.
  [[nodiscard]] bool names_mixtral_block(const MixtureWeights& mixture) const {
    if (config_.architecture != "mixtral") return false;
    return weights_.gguf ||
           mixture.router.origin().name.find(tensor_names::mixtral_block) != std::string::npos;
  }

  ModelWeights& weights_;
  const ModelConfig& config_;
  std::string layer_;  // "model.layers.3."
  std::vector<LinearModule> modules_;
};

}  // namespace

std::int64_t LinearModule::out_features() const {
  std::int64_t rows = 0;
  for (const Linear* part : parts) rows += part->out_features();
  return rows;
}

std::vector<LinearModule> linear_modules(Decoder& decoder) {
  return Lister(decoder.weights_to_change(), decoder.config()).list();
}

std::vector<NormModule> norm_modules(Decoder& decoder) {
  ModelWeights& weights = decoder.weights_to_change();
  std::vector<NormModule> modules;
  const std::string prefix = module_prefix(weights);
  for (std::int64_t index = 0; index < decoder.config().layer_count(); ++index) {
    LayerWeights& layer = weights.layers[static_cast<std::size_t>(index)];
    for (const NamedGain& gain : gains_of(layer, decoder.config(), weights, index)) {
      modules.push_back({str_cat(prefix, "layers.", index, ".", gain.module), gain.gain});
    }
  }
  modules.push_back({prefix + "norm", &weights.final_norm});
  return modules;
}

std::string embedding_module(const Decoder& decoder) {
  return module_prefix(decoder.weights()) + "embed_tokens";
}

}  // namespace onset
