// The FFN of a block: dense, or a mixture of experts.
#include <ATen/ATen.h>

#include "onset/model/decoder_pass.h"
#include "onset/model/routing.h"

namespace onset {
namespace {

// While an expert is computed, those behind it are read ahead.
constexpr std::size_t experts_ahead = 2;

template <typename Visit>
void for_each_matrix(const FfnWeights& expert, const Visit& visit) {
  for (const Linear* linear : {&expert.gate, &expert.up, &expert.down}) {
    visit(linear->stored().bytes);
  }
}

}  // namespace

at::Tensor Decoder::ffn(const Pass& pass, std::int64_t layer, const at::Tensor& input) const {
  if (config_.is_mixture(layer)) return mixture(pass, layer, input);
  const FfnWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].ffn;
  const at::Tensor gate = pass.at(SiteKind::ffn_gate, layer, weights.gate(input));
  const at::Tensor up = pass.at(SiteKind::ffn_up, layer, weights.up(input));
  const at::Tensor product =
      pass.at(SiteKind::ffn_product, layer, gated(config_.activation, gate, up));
  return weights.down(product);
}

at::Tensor Decoder::mixture(const Pass& pass, std::int64_t layer, const at::Tensor& input) const {
  const MixtureWeights& weights = *weights_.layers[static_cast<std::size_t>(layer)].mixture;
  const at::Tensor logits = pass.at(SiteKind::router, layer, weights.router(input));
  const Routing routing = route(logits, config_.mixture, weights.correction_bias);
  const at::Tensor chosen = pass.at(SiteKind::router_experts, layer, routing.experts);
  const at::Tensor chosen_weights = pass.at(SiteKind::router_weights, layer, routing.weights);
  const at::Tensor routed = routed_experts(pass, layer, input, chosen, chosen_weights);
  if (!weights.shared) return routed;
  const at::Tensor product =
      pass.at(SiteKind::shared_product, layer,
              gated(config_.activation, weights.shared->gate(input), weights.shared->up(input)));
  at::Tensor shared = weights.shared->down(product);
  if (config_.mixture.shared_gate) shared = shared.mul(at::sigmoid(weights.shared_gate(input)));
  return routed + pass.at(SiteKind::shared_out, layer, std::move(shared));
}

at::Tensor Decoder::routed_experts(const Pass& pass, std::int64_t layer, const at::Tensor& input,
                                   const at::Tensor& chosen, const at::Tensor& weights) const {
  const auto& experts = weights_.layers[static_cast<std::size_t>(layer)].mixture->experts;
  const std::vector<ExpertRows> groups = group_by_expert(chosen, config_.mixture.experts);
  const at::Tensor flat_weights = weights.reshape({-1, 1});
  const bool streamed = options_.residency == Residency::streamed;
  const auto read_ahead = [&](std::size_t group) {
    if (!streamed || group >= groups.size()) return;
    for_each_matrix(experts[static_cast<std::size_t>(groups[group].expert)],
                    [&](std::span<const std::byte> bytes) { checkpoint_.will_need(bytes); });
  };
  for (std::size_t g = 0; g < experts_ahead; ++g) read_ahead(g);
  at::Tensor out = at::zeros_like(input);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    read_ahead(g + experts_ahead);
    const ExpertRows& group = groups[g];
    const FfnWeights& expert = experts[static_cast<std::size_t>(group.expert)];
    const at::Tensor rows = at::tensor(group.rows, at::kLong);
    const at::Tensor x = input.index_select(0, rows);
    const at::Tensor product =
        pass.at_expert({SiteKind::expert_product, layer, group.expert}, group.rows,
                       gated(config_.activation, expert.gate(x), expert.up(x)));
    const at::Tensor weight = flat_weights.index_select(0, at::tensor(group.slots, at::kLong));
    const at::Tensor part = pass.at_expert({SiteKind::expert_out, layer, group.expert}, group.rows,
                                           expert.down(product).mul(weight));
    out.index_add_(0, rows, part);
    if (streamed) {
      for_each_matrix(expert, [&](std::span<const std::byte> bytes) { checkpoint_.drop(bytes); });
    }
  }
  return out;
}

}  // namespace onset
