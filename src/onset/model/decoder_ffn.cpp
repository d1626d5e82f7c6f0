// The FFN of a block: dense, or a mixture of experts.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <atomic>

#include "onset/kernels/gradient.h"
#include "onset/kernels/own_kernels.h"
#include "onset/model/decoder_pass.h"
#include "onset/model/placement.h"
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

// to[rows[i], first + c] += part[i, c]; what index_add_ does slowly where `to` is a slice.
template <typename Value>
void add_rows_of(const at::Tensor& part, const std::vector<std::int64_t>& rows, std::int64_t first,
                 at::Tensor& to) {
  const std::int64_t columns = part.size(1);
  const Value* from = part.const_data_ptr<Value>();
  for (const std::int64_t row : rows) {
    Value* into = to.mutable_data_ptr<Value>() + row * to.size(1) + first;
    for (std::int64_t c = 0; c < columns; ++c) into[c] += from[c];
    from += columns;
  }
}

void add_rows(const at::Tensor& part, const std::vector<std::int64_t>& rows, std::int64_t first,
              at::Tensor& to) {
  const at::Tensor packed = part.contiguous();
  if (to.scalar_type() == at::kDouble) return add_rows_of<double>(packed, rows, first, to);
  add_rows_of<float>(packed, rows, first, to);
}

// Calls work(thread, threads) once on each thread, with the caller's mode of autograd, which
// threads do not inherit. Products inside run on that thread alone.
template <typename Work>
void on_every_thread(const Work& work) {
  const bool inference = c10::InferenceMode::is_enabled();
  const std::int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](std::int64_t begin, std::int64_t end) {
    const c10::InferenceMode mode(inference);
    const c10::AutoGradMode no_grad(false);
    for (std::int64_t thread = begin; thread < end; ++thread) work(thread, threads);
  });
}

}  // namespace

at::Tensor Decoder::ffn(const Pass& pass, std::int64_t layer, const at::Tensor& input) const {
  if (config_.is_mixture(layer)) return mixture(pass, layer, input);
  const FfnWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].ffn;
  const LinearInput shared(input);
  const at::Tensor gate = pass.at(SiteKind::ffn_gate, layer, weights.gate(shared));
  const at::Tensor up = pass.at(SiteKind::ffn_up, layer, weights.up(shared));
  const LinearInput product = gated(config_.activation, gate, up, keeps_rounded());
  const at::Tensor seen = pass.at(SiteKind::ffn_product, layer, product.x());
  return weights.down(pass.edits({SiteKind::ffn_product, layer}) ? seen : product);
}

LinearInput Decoder::gated_product(const FfnWeights& weights, const at::Tensor& input) const {
  const LinearInput shared(input);
  return gated(config_.activation, weights.gate(shared), weights.up(shared), keeps_rounded());
}

at::Tensor Decoder::mixture(const Pass& pass, std::int64_t layer, const at::Tensor& input) const {
  const MixtureWeights& weights = *weights_.layers[static_cast<std::size_t>(layer)].mixture;
  const at::Tensor logits = pass.at(SiteKind::router, layer, weights.router(input));
  const Routing routing = route(logits, config_.mixture, weights.correction_bias);
  const at::Tensor chosen = pass.at(SiteKind::router_experts, layer, routing.experts);
  const at::Tensor chosen_weights = pass.at(SiteKind::router_weights, layer, routing.weights);
  const at::Tensor routed = routed_experts(pass, layer, input, chosen, chosen_weights);
  if (!weights.shared) return routed;
  const LinearInput product = gated_product(*weights.shared, input);
  const at::Tensor seen = pass.at(SiteKind::shared_product, layer, product.x());
  at::Tensor shared =
      weights.shared->down(pass.edits({SiteKind::shared_product, layer}) ? seen : product);
  if (config_.mixture.shared_gate) shared = shared.mul(at::sigmoid(weights.shared_gate(input)));
  return routed + pass.at(SiteKind::shared_out, layer, std::move(shared));
}

at::Tensor Decoder::routed_experts(const Pass& pass, std::int64_t layer, const at::Tensor& input,
                                   const at::Tensor& chosen, const at::Tensor& weights) const {
  const std::vector<ExpertRows> groups = group_by_expert(chosen, config_.mixture.experts);
  const at::Tensor flat_weights = weights.reshape({-1, 1});
  const bool seen =
      pass.wants(SiteKind::expert_product, layer) || pass.wants(SiteKind::expert_out, layer);
  const auto& experts = weights_.layers[static_cast<std::size_t>(layer)].mixture->experts;
  const bool differentiable =
      records_gradient(input) || records_gradient(flat_weights) ||
      std::any_of(experts.begin(), experts.end(), [](const FfnWeights& expert) {
        return expert.gate.trains() || expert.up.trains() || expert.down.trains();
      });
  if (!seen && !differentiable && groups.size() > 1 && suits_own_kernels(input)) {
    return experts_at_once(layer, input, groups, flat_weights);
  }
  at::Tensor out = at::zeros_like(input);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const ExpertRows& group = groups[g];
    const FfnWeights& expert = experts[static_cast<std::size_t>(group.expert)];
    if (g + 1 < groups.size()) {
      read_ahead(experts[static_cast<std::size_t>(groups[g + 1].expert)]);
    }
    const at::Tensor rows = indices(group.rows, input);
    const at::Tensor x = input.index_select(0, rows);
    const SiteId site{SiteKind::expert_product, layer, group.expert};
    const LinearInput product = gated_product(expert, x);
    const at::Tensor seen_product = pass.at_expert(site, group.rows, product.x());
    const at::Tensor weight = flat_weights.index_select(0, indices(group.slots, input));
    const at::Tensor part =
        pass.at_expert({SiteKind::expert_out, layer, group.expert}, group.rows,
                       expert.down(pass.edits(site) ? seen_product : product).mul(weight));
    out.index_add_(0, rows, part);
    drop_behind(expert);
  }
  return out;
}

// The same, each expert on one thread: an expert has too few rows to share its products among
// threads well. First all products of gate and up, then the outputs, of which every thread makes
// some columns for all experts in their order, so that the sum does not depend on the threads.
at::Tensor Decoder::experts_at_once(std::int64_t layer, const at::Tensor& input,
                                    const std::vector<ExpertRows>& groups,
                                    const at::Tensor& weights) const {
  const auto& experts = weights_.layers[static_cast<std::size_t>(layer)].mixture->experts;
  const auto expert_of = [&](const ExpertRows& group) -> const FfnWeights& {
    return experts[static_cast<std::size_t>(group.expert)];
  };
  std::vector<at::Tensor> rows;
  std::vector<at::Tensor> products(groups.size());
  for (const ExpertRows& group : groups) rows.push_back(at::tensor(group.rows, at::kLong));
  std::atomic<std::size_t> next = 0;
  on_every_thread([&](std::int64_t, std::int64_t) {
    for (std::size_t g = next++; g < groups.size(); g = next++) {
      const FfnWeights& expert = expert_of(groups[g]);
      if (const std::size_t ahead = g + experts_ahead; ahead < groups.size()) {
        read_ahead(expert_of(groups[ahead]));
      }
      const at::Tensor x = input.index_select(0, rows[g]);
      const at::Tensor weight = weights.index_select(0, at::tensor(groups[g].slots, at::kLong));
      products[g] = gated_product(expert, x).x().mul(weight);
    }
  });
  at::Tensor out = at::zeros(input.sizes(), input.options());
  on_every_thread([&](std::int64_t thread, std::int64_t threads) {
    const std::int64_t first = config_.hidden * thread / threads;
    const std::int64_t count = config_.hidden * (thread + 1) / threads - first;
    if (count == 0) return;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      add_rows(expert_of(groups[g]).down.outputs(first, count)(products[g]), groups[g].rows, first,
               out);
    }
  });
  for (const ExpertRows& group : groups) drop_behind(expert_of(group));
  return out;
}

void Decoder::read_ahead(const FfnWeights& expert) const {
  if (options_.residency != Residency::streamed) return;
  for_each_matrix(expert, [&](std::span<const std::byte> bytes) { checkpoint_.will_need(bytes); });
}

void Decoder::drop_behind(const FfnWeights& expert) const {
  if (options_.residency != Residency::streamed) return;
  for_each_matrix(expert, [&](std::span<const std::byte> bytes) { checkpoint_.drop(bytes); });
}

}  // namespace onset
