#include "onset/massive/block_rows.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>

#include "onset/model/decoder.h"

namespace onset {
namespace {

constexpr std::array row_kinds{
    SiteKind::resid_pre,      SiteKind::attn_heads,     SiteKind::attn_raw,
    SiteKind::attn_out,       SiteKind::resid_mid,      SiteKind::ffn_norm,
    SiteKind::ffn_gate,       SiteKind::ffn_up,         SiteKind::ffn_product,
    SiteKind::router_experts, SiteKind::router_weights, SiteKind::expert_product,
    SiteKind::shared_product, SiteKind::ffn_raw,        SiteKind::ffn_out,
    SiteKind::resid_post};

// The row of a token at a site of an expert, which holds only those that were sent to it.
void keep_expert_row(const SiteContext& context, const at::Tensor& tensor, BlockRow& row) {
  const auto at = std::lower_bound(context.rows.begin(), context.rows.end(), row.token);
  if (at == context.rows.end() || *at != row.token) return;
  row.expert_products[context.site.expert] = tensor.select(0, at - context.rows.begin()).clone();
}

at::Tensor one_row(const Model& model, const Linear& linear, const at::Tensor& input) {
  return linear(input.unsqueeze(0).to(model.decoder().device())).select(0, 0).cpu();
}

// Gate and up of an expert are no sites: they are made again.
FfnModule module_of(const Model& model, std::string name, const FfnWeights& weights,
                    const at::Tensor& input, const at::Tensor& product, double factor) {
  return {.name = std::move(name),
          .weights = &weights,
          .input = input,
          .gate = one_row(model, weights.gate, input),
          .up = one_row(model, weights.up, input),
          .product = product,
          .factor = factor};
}

std::vector<FfnModule> mixture_modules(const Model& model, const MixtureWeights& weights,
                                       const BlockRow& row) {
  std::vector<FfnModule> modules;
  const at::Tensor& input = row.at(SiteKind::ffn_norm);
  const at::Tensor& chosen = row.at(SiteKind::router_experts);
  for (std::int64_t slot = 0; slot < chosen.size(0); ++slot) {
    const auto expert = chosen.select(0, slot).item<std::int64_t>();
    modules.push_back(module_of(model, "experts." + std::to_string(expert),
                                weights.experts[static_cast<std::size_t>(expert)], input,
                                row.expert_products.at(expert),
                                row.at(SiteKind::router_weights).select(0, slot).item<double>()));
  }
  if (!weights.shared) return modules;
  const bool gated = weights.shared_gate.out_features() > 0;
  const double factor =
      gated ? at::sigmoid(one_row(model, weights.shared_gate, input)).item<double>() : 1.0;
  modules.push_back(
      module_of(model, "shared", *weights.shared, input, row.at(SiteKind::shared_product), factor));
  return modules;
}

}  // namespace

float BlockRow::value(SiteKind kind, std::int64_t dim) const {
  return static_cast<float>(at(kind).select(0, dim).item<double>());
}

std::vector<BlockRow> capture_block_rows(const Model& model, const std::vector<std::int64_t>& ids,
                                         std::span<const BlockPlace> places,
                                         const Hooks* interventions) {
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  std::vector<BlockRow> rows;
  SiteSet sites(layers);
  std::int64_t last = 0;
  for (const BlockPlace& place : places) {
    rows.push_back(
        {.layer = place.layer, .token = place.token, .sites = {}, .expert_products = {}});
    for (const SiteKind kind : row_kinds) sites.add({kind, place.layer});
    last = std::max(last, place.layer);
  }
  Hooks hooks = edited_as(interventions, layers);
  hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
    for (BlockRow& row : rows) {
      if (row.layer != context.site.layer) continue;
      if (is_expert_site(context.site.kind)) {
        keep_expert_row(context, tensor, row);
        continue;
      }
      row.sites[context.site.kind] = tensor.select(0, row.token).clone();
    }
  });
  const std::vector<SequenceInput> batch{{.ids = ids, .cache = nullptr}};
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks, last + 1));
  return rows;
}

std::vector<FfnModule> ffn_modules(const Model& model, const BlockRow& row) {
  const LayerWeights& weights =
      model.decoder().weights().layers[static_cast<std::size_t>(row.layer)];
  if (weights.mixture) return mixture_modules(model, *weights.mixture, row);
  return {{.name = "ffn",
           .weights = &weights.ffn,
           .input = row.at(SiteKind::ffn_norm),
           .gate = row.at(SiteKind::ffn_gate),
           .up = row.at(SiteKind::ffn_up),
           .product = row.at(SiteKind::ffn_product)}};
}

}  // namespace onset
