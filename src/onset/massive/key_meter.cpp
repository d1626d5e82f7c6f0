#include "onset/massive/key_meter.h"

#include <ATen/ATen.h>

#include "onset/model/hooks.h"

namespace onset {
namespace {

double median_of(const at::Tensor& values) { return values.median().item<double>(); }

// Cosines of queries after the position with its key, and with the other keys that they see.
void add_cosines(const at::Tensor& q, const at::Tensor& k, std::int64_t position, double& own,
                 double& others) {
  const auto unit = [](const at::Tensor& states) {
    const at::Tensor x = states.to(at::kDouble);
    return x / x.norm(2, 2, /*keepdim=*/true).clamp_min(1e-30);
  };
  const std::int64_t tokens = q.size(0);
  const std::int64_t shared = q.size(1) / k.size(1);
  const at::Tensor queries = unit(q).transpose(0, 1);                               // [H, T, K]
  const at::Tensor keys = unit(k).repeat_interleave(shared, 1).permute({1, 2, 0});  // [H, K, T]
  const at::Tensor cosines = at::matmul(queries, keys).mean(0);                     // [T, T]
  const std::int64_t after = tokens - position - 1;
  own += cosines.narrow(0, position + 1, after).select(1, position).mean().item<double>();
  at::Tensor seen = at::ones({tokens, tokens}, at::kDouble).tril();
  seen.select(1, position).zero_();
  seen.narrow(0, 0, position + 1).zero_();
  others += ((cosines * seen).sum() / seen.sum()).item<double>();
}

}  // namespace

void add_norms(const at::Tensor& states, std::int64_t position, double& own, double& others) {
  const at::Tensor norms = states.to(at::kDouble).norm(2, 2);
  own += norms.select(0, position).mean().item<double>();
  const at::Tensor rest = at::cat(
      {norms.narrow(0, 0, position), norms.narrow(0, position + 1, norms.size(0) - position - 1)});
  others += median_of(rest);
}

struct KeyMeter::State {
  std::int64_t position = 0;
  std::vector<KeyReading> sums;
  std::vector<double> samples;  // per layer
  at::Tensor q;
  at::Tensor k;
};

KeyMeter::KeyMeter(std::int64_t layers, std::int64_t position) : state_(std::make_shared<State>()) {
  state_->position = position;
  state_->sums.resize(static_cast<std::size_t>(layers));
  state_->samples.resize(static_cast<std::size_t>(layers));
}

void KeyMeter::observe(Hooks& hooks) const {
  SiteSet sites(hooks.layer_count());
  for (const SiteKind kind : {SiteKind::q, SiteKind::k, SiteKind::v}) sites.add_all_layers(kind);
  // `v` comes behind `q` and `k` of its layer.
  hooks.observe(sites, [state = state_](const SiteContext& context, const at::Tensor& tensor) {
    if (context.site.kind == SiteKind::q) state->q = tensor;
    if (context.site.kind == SiteKind::k) state->k = tensor;
    if (context.site.kind != SiteKind::v) return;
    const auto layer = static_cast<std::size_t>(context.site.layer);
    KeyReading& sum = state->sums[layer];
    for (const SequenceRows& rows : context.sequences) {
      if (rows.count < state->position + 2) continue;
      const at::Tensor q = state->q.narrow(0, rows.row, rows.count);
      const at::Tensor k = state->k.narrow(0, rows.row, rows.count);
      const at::Tensor v = tensor.narrow(0, rows.row, rows.count);
      add_norms(k, state->position, sum.key_norm, sum.others_key_norm);
      add_norms(v, state->position, sum.value_norm, sum.others_value_norm);
      add_cosines(q, k, state->position, sum.query_cosine, sum.others_query_cosine);
      state->samples[layer] += 1;
    }
  });
}

std::vector<KeyReading> KeyMeter::readings() const {
  std::vector<KeyReading> means = state_->sums;
  for (std::size_t layer = 0; layer < means.size(); ++layer) {
    KeyReading& mean = means[layer];
    for (double* value : {&mean.key_norm, &mean.others_key_norm, &mean.value_norm,
                          &mean.others_value_norm, &mean.query_cosine, &mean.others_query_cosine}) {
      *value /= state_->samples[layer];
    }
  }
  return means;
}

}  // namespace onset
