#include "onset/model/mixture_weights.h"

#include <ATen/ATen.h>

#include "onset/base/error.h"

namespace onset {
namespace {

// The layer's prefix with the block's name in Hugging Face files: "model.layers.3.mlp".
std::string block_name(const TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  const std::string mixtral = finder.layer_name(layer, {tensor_names::mixtral_block, ""});
  const std::string common = finder.layer_name(layer, {tensor_names::common_block, ""});
  const bool has_common = finder.find(common + ".gate", "weight") != nullptr;
  return config.architecture == "mixtral" && !has_common ? mixtral : common;
}

std::vector<FfnWeights> stacked_gguf_experts(TensorFinder& finder, const ModelConfig& config,
                                             std::int64_t layer) {
  const MixtureConfig& mixture = config.mixture;
  const auto stack = [&](std::string_view name, std::int64_t rows, std::int64_t columns) {
    return finder.stack(finder.layer_name(layer, {"", name}) + ".weight", mixture.experts, rows,
                        columns);
  };
  const auto gate = stack("ffn_gate_exps", mixture.ffn, config.hidden);
  const auto up = stack("ffn_up_exps", mixture.ffn, config.hidden);
  const auto down = stack("ffn_down_exps", config.hidden, mixture.ffn);
  std::vector<FfnWeights> experts;
  for (std::size_t e = 0; e < gate.size(); ++e) {
    const auto of_stack = [&](std::string_view name, const StoredMatrix& weight) {
      return finder.plain(weight, {.name = finder.layer_name(layer, {"", name}) + ".weight",
                                   .expert = static_cast<std::int64_t>(e)});
    };
    experts.push_back({of_stack("ffn_gate_exps", gate[e]), of_stack("ffn_up_exps", up[e]),
                       of_stack("ffn_down_exps", down[e])});
  }
  return experts;
}

std::vector<FfnWeights> stacked_experts(TensorFinder& finder, const ModelConfig& config,
                                        const std::string& block) {
  const MixtureConfig& mixture = config.mixture;
  // Gate above up, as in the fused projections of a dense FFN.
  const auto gate_up = finder.stack(block + ".experts.gate_up_proj", mixture.experts,
                                    2 * mixture.ffn, config.hidden);
  const auto down =
      finder.stack(block + ".experts.down_proj", mixture.experts, config.hidden, mixture.ffn);
  std::vector<FfnWeights> experts;
  for (std::size_t e = 0; e < down.size(); ++e) {
    const auto expert = static_cast<std::int64_t>(e);
    const auto half = [&](std::int64_t first) {
      return finder.plain(gate_up[e].slice(first, mixture.ffn),
                          {.name = block + ".experts.gate_up_proj",
                           .first_row = first,
                           .all_rows = 2 * mixture.ffn,
                           .expert = expert});
    };
    experts.push_back(
        {half(0), half(mixture.ffn),
         finder.plain(down[e], {.name = block + ".experts.down_proj", .expert = expert})});
  }
  return experts;
}

}  // namespace

FfnWeights find_ffn(TensorFinder& finder, const FfnNames& names, std::int64_t layer,
                    std::int64_t inner, std::int64_t hidden, bool bias) {
  const auto name = [&](TensorNames tensor) { return finder.layer_name(layer, tensor); };
  return {.gate = finder.linear(name(names.gate), inner, hidden, bias),
          .up = finder.linear(name(names.up), inner, hidden, bias),
          .down = finder.linear(name(names.down), hidden, inner, bias)};
}

MixtureWeights find_mixture(TensorFinder& finder, const ModelConfig& config, std::int64_t layer) {
  const MixtureConfig& mixture = config.mixture;
  MixtureWeights weights;
  const std::string router = finder.is_gguf() ? finder.layer_name(layer, {"", "ffn_gate_inp"})
                                              : block_name(finder, config, layer) + ".gate";
  weights.router =
      finder.precise(finder.matrix(router, mixture.experts, config.hidden), {.name = router});
  if (mixture.correction_bias) {
    weights.correction_bias =
        finder.vector(finder.layer_name(layer, tensor_names::router_bias),
                      finder.is_gguf() ? "bias" : "e_score_correction_bias", mixture.experts);
    require_input(weights.correction_bias.isfinite().all().item<bool>(), "the router of layer ",
                  layer, " has a correction bias that holds NaN or infinity");
  }
  if (mixture.shared_ffn > 0) {
    weights.shared = find_ffn(
        finder, mixture.shared_gate ? tensor_names::qwen_shared : tensor_names::deepseek_shared,
        layer, mixture.shared_ffn, config.hidden, false);
    if (mixture.shared_gate) {
      const std::string gate = finder.layer_name(layer, tensor_names::shared_gate);
      weights.shared_gate = finder.precise(finder.row(gate, config.hidden), {.name = gate});
    }
  }
  return weights;
}

std::vector<FfnWeights> find_experts(TensorFinder& finder, const ModelConfig& config,
                                     std::int64_t layer) {
  if (finder.is_gguf()) return stacked_gguf_experts(finder, config, layer);
  const std::string block = block_name(finder, config, layer);
  if (finder.find(block + ".experts.down_proj", "") != nullptr) {
    return stacked_experts(finder, config, block);
  }
  const MixtureConfig& mixture = config.mixture;
  const bool numbered = finder.find(block + ".experts.0.gate_proj", "weight") == nullptr &&
                        config.architecture == "mixtral";
  std::vector<FfnWeights> experts;
  for (std::int64_t e = 0; e < mixture.experts; ++e) {
    const std::string expert = str_cat(block, ".experts.", e, ".");
    experts.push_back({.gate = finder.linear(expert + (numbered ? "w1" : "gate_proj"), mixture.ffn,
                                             config.hidden, false),
                       .up = finder.linear(expert + (numbered ? "w3" : "up_proj"), mixture.ffn,
                                           config.hidden, false),
                       .down = finder.linear(expert + (numbered ? "w2" : "down_proj"),
                                             config.hidden, mixture.ffn, false)});
  }
  static_cast<void>(finder.take_noted());  // read when chosen, not with the layer
  return experts;
}

}  // namespace onset
