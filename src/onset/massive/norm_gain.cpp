#include "onset/massive/norm_gain.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "onset/massive/norm_reading.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

constexpr std::size_t dims_listed = 16;
constexpr std::array quantile_levels{0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0};

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor row = tensor.to(at::kCPU, at::kDouble).contiguous().reshape({-1});
  return {row.const_data_ptr<double>(), row.const_data_ptr<double>() + row.numel()};
}

struct TokenState {
  std::vector<double> x;  // resid_mid at the question's layer
  bool massive = false;
};

// Collects while the blocks run.
class NormCollector {
 public:
  NormCollector(const Model& model, const NormQuestion& question)
      : weights_(model.decoder().weights()), question_(question) {
    const auto layers = static_cast<std::size_t>(model.config().layer_count());
    attention_.resize(layers);
    ffn_.resize(layers);
  }

  void begin(const PromptRange& range) { range_ = range; }

  void observe(const SiteContext& context, const at::Tensor& tensor) {
    const auto layer = static_cast<std::size_t>(context.site.layer);
    const bool before_attention = context.site.kind == SiteKind::resid_pre;
    const LayerWeights& weights = weights_.layers[layer];
    const at::Tensor& gain = before_attention ? weights.attn_norm : weights.ffn_norm;
    if (gain.defined()) {
      const at::Tensor x = tensor.to(at::kDouble);
      const at::Tensor sizes = (x * gain.to(at::kCPU, at::kDouble)).norm(2, 1) / x.norm(2, 1);
      add(before_attention ? attention_[layer] : ffn_[layer], context, values_of(sizes));
    }
    if (!before_attention && context.site.layer == question_.layer) keep_states(context, tensor);
  }

  [[nodiscard]] const std::vector<TokenState>& states() const { return states_; }
  [[nodiscard]] std::size_t shown_state() const { return shown_state_; }

  [[nodiscard]] LayerGains gains(std::int64_t layer, bool before_attention) const {
    const auto at = static_cast<std::size_t>(layer);
    const LayerWeights& weights = weights_.layers[at];
    const std::vector<double> gain =
        values_of(before_attention ? weights.attn_norm : weights.ffn_norm);
    std::vector<double> sizes;
    LayerGains result;
    result.layer = layer;
    for (const double value : gain) {
      sizes.push_back(std::fabs(value));
      result.mean += value / static_cast<double>(gain.size());
    }
    std::sort(sizes.begin(), sizes.end());
    for (const double level : quantile_levels) {
      const auto rank = std::llround(level * static_cast<double>(sizes.size() - 1));
      result.quantiles.push_back(sizes[static_cast<std::size_t>(rank)]);
    }
    for (const std::int64_t dim : question_.dims) {
      const double value = gain[static_cast<std::size_t>(dim)];
      const auto smaller = std::lower_bound(sizes.begin(), sizes.end(), std::fabs(value));
      result.at_dims.push_back(value);
      result.percentiles.push_back(static_cast<double>(smaller - sizes.begin()) /
                                   static_cast<double>(sizes.size()));
    }
    const Amplifications& found = before_attention ? attention_[at] : ffn_[at];
    result.amplification = found.shown;
    result.others_amplification = lower_median(found.others);
    return result;
  }

 private:
  struct Amplifications {
    double shown = 0;
    std::vector<double> others;
  };

  template <typename Visit>
  void for_each_token(const SiteContext& context, const Visit& visit) const {
    for (std::size_t s = 0; s < context.sequences.size(); ++s) {
      const std::size_t prompt = range_.begin + s;
      for (std::int64_t t = 0; t < context.sequences[s].count; ++t) {
        visit(prompt, context.sequences[s].row + t, t == question_.prompts[prompt].token);
      }
    }
  }

  void add(Amplifications& to, const SiteContext& context, const std::vector<double>& sizes) {
    for_each_token(context, [&](std::size_t prompt, std::int64_t row, bool massive) {
      const double size = sizes[static_cast<std::size_t>(row)];
      if (!massive) to.others.push_back(size);
      if (massive && prompt == question_.shown) to.shown = size;
    });
  }

  void keep_states(const SiteContext& context, const at::Tensor& tensor) {
    for_each_token(context, [&](std::size_t prompt, std::int64_t row, bool massive) {
      if (massive && prompt == question_.shown) shown_state_ = states_.size();
      states_.push_back({values_of(tensor.select(0, row)), massive});
    });
  }

  const ModelWeights& weights_;
  const NormQuestion& question_;
  PromptRange range_;
  std::vector<Amplifications> attention_;
  std::vector<Amplifications> ffn_;
  std::vector<TokenState> states_;
  std::size_t shown_state_ = 0;
};

// The analysis of one layer from the states of all tokens.
class LayerAnalyser {
 public:
  LayerAnalyser(const NormCollector& collected, std::vector<double> gain, double eps)
      : states_(collected.states()),
        shown_(collected.states()[collected.shown_state()]),
        gain_(std::move(gain)),
        order_(falling_order(gain_)),
        eps_(eps) {}

  NormAnalysis run(const NormQuestion& question) {
    NormAnalysis result;
    result.layer = question.layer;
    average_energies();
    std::vector<NormReading> others;
    for (const TokenState& state : states_) {
      (state.massive ? result.tokens : others).push_back(read(state));
    }
    result.token = read(shown_);
    result.other_count = std::ssize(others);
    result.relative_amplification = std::numeric_limits<double>::quiet_NaN();
    if (!others.empty()) {
      result.others = median_reading(others);
      result.relative_amplification = result.token.amplification / result.others->amplification;
    }
    list_dims(question, result);
    result.curve = curve();
    const std::vector<double> product = times(shown_.x, gain_);
    result.x.assign(shown_.x.begin(), shown_.x.end());
    result.gain.assign(gain_.begin(), gain_.end());
    for (const double value : product) {
      result.product.push_back(static_cast<float>(value / result.token.rms));
    }
    return result;
  }

 private:
  // Mean energies of the other tokens, before and after the gain.
  void average_energies() {
    mean_before_.assign(gain_.size(), 0.0);
    mean_after_.assign(gain_.size(), 0.0);
    for (const TokenState& state : states_) {
      if (state.massive) continue;
      ++other_count_;
      const std::vector<double> before = energy(state.x);
      const std::vector<double> after = energy(times(state.x, gain_));
      for (std::size_t d = 0; d < gain_.size(); ++d) {
        mean_before_[d] += before[d];
        mean_after_[d] += after[d];
      }
    }
    for (std::size_t d = 0; other_count_ > 0 && d < gain_.size(); ++d) {
      mean_before_[d] /= other_count_;
      mean_after_[d] /= other_count_;
    }
  }

  [[nodiscard]] NormReading read(const TokenState& state) const {
    NormReading reading = read_norm(state.x, gain_, order_, eps_);
    if (other_count_ == 0) return reading;
    reading.before.divergence = divergence(energy(state.x), mean_before_);
    reading.after.divergence = divergence(energy(times(state.x, gain_)), mean_after_);
    return reading;
  }

  void list_dims(const NormQuestion& question, NormAnalysis& result) const {
    std::vector<std::int64_t> ranks(gain_.size());
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      ranks[order_[rank]] = static_cast<std::int64_t>(rank);
    }
    const std::vector<double> before = energy(shown_.x);
    const std::vector<double> after = energy(times(shown_.x, gain_));
    const auto row = [&](std::size_t d) {
      std::vector<double> others;
      for (const TokenState& state : states_) {
        if (state.massive) continue;
        const double rms = read_rms(state);
        others.push_back(std::fabs(state.x[d] * gain_[d]) / rms);
      }
      return NormDim{.dim = static_cast<std::int64_t>(d),
                     .x = shown_.x[d],
                     .normalised = shown_.x[d] / result.token.rms,
                     .gain = gain_[d],
                     .product = shown_.x[d] * gain_[d] / result.token.rms,
                     .energy_before = before[d],
                     .energy_after = after[d],
                     .others_product = lower_median(std::move(others)),
                     .gain_rank = ranks[d]};
    };
    for (const std::int64_t dim : question.dims) {
      result.massive_dims.push_back(row(static_cast<std::size_t>(dim)));
    }
    const std::vector<std::size_t> largest = falling_order(after);
    for (std::size_t i = 0; i < std::min(dims_listed, largest.size()); ++i) {
      result.top_dims.push_back(row(largest[i]));
    }
  }

  [[nodiscard]] double read_rms(const TokenState& state) const {
    double sum = 0;
    for (const double value : state.x) sum += value * value;
    return std::sqrt(sum / static_cast<double>(state.x.size()) + eps_);
  }

  [[nodiscard]] EnergyCurve curve() const {
    EnergyCurve result;
    result.dims = curve_dims(std::ssize(gain_));
    result.before = cumulative_shares(energy(shown_.x));
    result.after = cumulative_shares(energy(times(shown_.x, gain_)));
    std::vector<std::vector<double>> before(result.dims.size());
    std::vector<std::vector<double>> after(result.dims.size());
    for (const TokenState& state : states_) {
      if (state.massive) continue;
      const std::vector<double> b = cumulative_shares(energy(state.x));
      const std::vector<double> a = cumulative_shares(energy(times(state.x, gain_)));
      for (std::size_t k = 0; k < b.size(); ++k) {
        before[k].push_back(b[k]);
        after[k].push_back(a[k]);
      }
    }
    for (std::size_t k = 0; other_count_ > 0 && k < result.dims.size(); ++k) {
      result.others_before.push_back(lower_median(before[k]));
      result.others_after.push_back(lower_median(after[k]));
    }
    return result;
  }

  const std::vector<TokenState>& states_;
  const TokenState& shown_;
  std::vector<double> gain_;
  std::vector<std::size_t> order_;
  double eps_;
  std::vector<double> mean_before_;
  std::vector<double> mean_after_;
  double other_count_ = 0;
};

void collect(const Model& model, const NormQuestion& question, const Log& log,
             const Hooks* interventions, NormCollector& collector) {
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  SiteSet sites(layers);
  sites.add_all_layers(SiteKind::resid_pre);
  sites.add_all_layers(SiteKind::resid_mid);
  Hooks hooks = edited_as(interventions, layers);
  hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
    collector.observe(context, tensor);
    log.step("norms", context.site.layer + 1, layers);
  });
  std::vector<std::int64_t> lengths;
  for (const MassiveTokenOf& prompt : question.prompts) lengths.push_back(std::ssize(prompt.ids));
  for (const PromptRange& range : divide(lengths)) {
    collector.begin(range);
    std::vector<SequenceInput> batch;
    for (std::size_t p = range.begin; p < range.end; ++p) {
      batch.push_back({.ids = question.prompts[p].ids, .cache = nullptr});
    }
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  }
}

}  // namespace

NormResult analyse_norms(const Model& model, const NormQuestion& question, const Log& log,
                         const Hooks* interventions) {
  NormCollector collector(model, question);
  collect(model, question, log, interventions, collector);
  NormResult result;
  for (std::int64_t layer = 0; layer < model.config().layer_count(); ++layer) {
    const LayerWeights& weights = model.decoder().weights().layers[static_cast<std::size_t>(layer)];
    if (weights.attn_norm.defined()) {
      result.gains.attention.push_back(collector.gains(layer, true));
    }
    if (weights.ffn_norm.defined()) result.gains.ffn.push_back(collector.gains(layer, false));
  }
  const at::Tensor& gain =
      model.decoder().weights().layers[static_cast<std::size_t>(question.layer)].ffn_norm;
  if (gain.defined()) {
    result.ffn_norm =
        LayerAnalyser(collector, values_of(gain), model.config().norm_eps).run(question);
  }
  return result;
}

}  // namespace onset
