#include "onset/massive/block_rows.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>

#include "onset/model/decoder.h"

namespace onset {
namespace {

constexpr std::array row_kinds{SiteKind::resid_pre, SiteKind::attn_heads, SiteKind::attn_raw,
                               SiteKind::attn_out,  SiteKind::resid_mid,  SiteKind::ffn_norm,
                               SiteKind::ffn_gate,  SiteKind::ffn_up,     SiteKind::ffn_product,
                               SiteKind::ffn_raw,   SiteKind::ffn_out,    SiteKind::resid_post};

}  // namespace

float BlockRow::value(SiteKind kind, std::int64_t dim) const {
  return static_cast<float>(at(kind).select(0, dim).item<double>());
}

std::vector<BlockRow> capture_block_rows(const Model& model, const std::vector<std::int64_t>& ids,
                                         std::span<const BlockPlace> places) {
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  std::vector<BlockRow> rows;
  SiteSet sites(layers);
  std::int64_t last = 0;
  for (const BlockPlace& place : places) {
    rows.push_back({.layer = place.layer, .token = place.token, .sites = {}});
    for (const SiteKind kind : row_kinds) sites.add({kind, place.layer});
    last = std::max(last, place.layer);
  }
  Hooks hooks(layers);
  hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
    for (BlockRow& row : rows) {
      if (row.layer != context.site.layer) continue;
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
  return {{.name = "ffn",
           .weights = &weights.ffn,
           .input = row.at(SiteKind::ffn_norm),
           .gate = row.at(SiteKind::ffn_gate),
           .up = row.at(SiteKind::ffn_up),
           .product = row.at(SiteKind::ffn_product)}};
}

}  // namespace onset
