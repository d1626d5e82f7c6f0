#include "onset/massive/trace.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/massive/mixture_parts.h"
#include "onset/massive/statistics.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

// Rows of one prompt in a packed [N, D] tensor.
class Rows {
 public:
  Rows(const at::Tensor& packed, const SequenceRows& rows, std::int64_t hidden)
      : state_{.values = {packed.const_data_ptr<float>() + rows.row * hidden,
                          static_cast<std::size_t>(rows.count * hidden)},
               .hidden = hidden} {}

  [[nodiscard]] const StateView& state() const { return state_; }
  [[nodiscard]] float at(std::size_t token, std::int64_t dim) const {
    return state_
        .values[token * static_cast<std::size_t>(state_.hidden) + static_cast<std::size_t>(dim)];
  }

 private:
  StateView state_;
};

at::Tensor as_float(const at::Tensor& tensor) { return tensor.to(at::kFloat).contiguous(); }

// Collects while the blocks run.
class Tracer {
 public:
  Tracer(const ModelConfig& config, const ScanOptions& options, std::size_t first_prompt,
         std::span<PromptTrace> traces)
      : hidden_(config.hidden), options_(options), first_prompt_(first_prompt), traces_(traces) {}

  void observe(const SiteContext& context, const at::Tensor& tensor) {
    switch (context.site.kind) {
      case SiteKind::resid_pre:
        resid_pre_ = as_float(tensor);
        mixture_.begin_layer();
        if (context.site.layer == 0) trace_input(context);
        break;
      case SiteKind::attn_out:
        attn_out_ = as_float(tensor);
        break;
      case SiteKind::expert_out:
      case SiteKind::shared_out:
        mixture_.observe(context, tensor);
        break;
      case SiteKind::ffn_out:
        ffn_out_ = as_float(tensor);
        break;
      default:
        trace_layer(context, as_float(tensor));
    }
  }

 private:
  void trace_input(const SiteContext& context) {
    for (std::size_t p = 0; p < traces_.size(); ++p) {
      const Rows rows(resid_pre_, context.sequences[p], hidden_);
      check_finite(rows.state(), p, "the embedding");
      previous_dims_.push_back(largest_dims(rows.state()));
      for (std::size_t t = 0; t < previous_dims_.back().size(); ++t) {
        traces_[p].input_largest.push_back(std::fabs(rows.at(t, previous_dims_.back()[t])));
      }
    }
  }

  void trace_layer(const SiteContext& context, const at::Tensor& resid_post) {
    for (std::size_t p = 0; p < traces_.size(); ++p) {
      const SequenceRows& sequence = context.sequences[p];
      const Rows after(resid_post, sequence, hidden_);
      check_finite(after.state(), p, str_cat("layer ", context.site.layer));
      const std::vector<std::int64_t> dims = largest_dims(after.state());
      LayerTrace trace;
      trace.statistics = statistics(after.state(), context.site.layer);
      const double by_ratio = options_.min_ratio * static_cast<double>(trace.statistics.median_abs);
      trace.absolute_entries = entries_above(after.state(), std::max(by_ratio, options_.min_abs),
                                             entry_list_limit, trace.absolute_count);
      trace.relative_entries =
          entries_above(after.state(), by_ratio, entry_list_limit, trace.relative_count);
      const auto parts = [&](std::size_t t, std::int64_t dim) {
        const std::int64_t row = sequence.row + static_cast<std::int64_t>(t);
        return EntryParts{.dim = dim,
                          .resid_pre = Rows(resid_pre_, sequence, hidden_).at(t, dim),
                          .attn_out = Rows(attn_out_, sequence, hidden_).at(t, dim),
                          .ffn_out = Rows(ffn_out_, sequence, hidden_).at(t, dim),
                          .experts = mixture_.experts(row, dim),
                          .shared_out = mixture_.shared_out(row, dim)};
      };
      for (std::size_t t = 0; t < dims.size(); ++t) {
        trace.tokens.push_back({.largest = std::fabs(after.at(t, dims[t])),
                                .at_largest = parts(t, dims[t]),
                                .at_previous = parts(t, previous_dims_[p][t])});
      }
      previous_dims_[p] = dims;
      traces_[p].layers.push_back(std::move(trace));
    }
  }

  LayerStatistics statistics(const StateView& state, std::int64_t layer) const {
    LayerStatistics result;
    result.layer = layer;
    result.top = largest_entries(state, std::max<std::int64_t>(options_.top, 1));
    result.largest = result.top.front();
    result.top.resize(std::min(result.top.size(), static_cast<std::size_t>(options_.top)));
    result.median_abs = lower_median_abs(state.values);
    return result;
  }

  void check_finite(const StateView& state, std::size_t prompt, const std::string& where) const {
    const std::int64_t bad = first_not_finite(state.values);
    if (bad < 0) return;
    const StateEntry entry = state.entry(static_cast<std::size_t>(bad));
    throw input_error(
        str_cat("prompt ", first_prompt_ + prompt, ": the state after ", where, " holds ",
                entry.value, " at token ", entry.token, ", dim ", entry.dim),
        "`onset inspect MODEL --verify` names the tensors that hold NaN or infinity");
  }

  std::int64_t hidden_;
  const ScanOptions& options_;
  std::size_t first_prompt_;
  std::span<PromptTrace> traces_;
  at::Tensor resid_pre_;
  at::Tensor attn_out_;
  at::Tensor ffn_out_;
  MixtureParts mixture_;
  std::vector<std::vector<std::int64_t>> previous_dims_;  // per prompt and token
};

void trace_group(const Model& model, std::span<const ScanPrompt> prompts, std::size_t first_prompt,
                 const ScanOptions& options, const Log& log, const Hooks* interventions,
                 std::span<PromptTrace> traces) {
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  std::vector<SequenceInput> batch;
  for (const ScanPrompt& prompt : prompts) batch.push_back({.ids = prompt.ids, .cache = nullptr});

  Tracer tracer(model.config(), options, first_prompt, traces);
  SiteSet sites(layers);
  for (const SiteKind kind : {SiteKind::resid_pre, SiteKind::attn_out, SiteKind::expert_out,
                              SiteKind::shared_out, SiteKind::ffn_out, SiteKind::resid_post}) {
    sites.add_all_layers(kind);
  }
  Hooks hooks = edited_as(interventions, layers);
  switch_off(hooks, options.without_experts);
  hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
    tracer.observe(context, tensor);
    if (context.site.kind == SiteKind::resid_post) {
      log.step("layers", context.site.layer + 1, layers);
    }
  });
  // Only the blocks are of interest: no final norm, no head.
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
}

}  // namespace

std::vector<PromptTrace> trace_prompts(const Model& model, const std::vector<ScanPrompt>& prompts,
                                       const ScanOptions& options, const Log& log,
                                       const Hooks* interventions) {
  std::vector<PromptTrace> traces(prompts.size());
  std::vector<std::int64_t> lengths;
  for (const ScanPrompt& prompt : prompts) {
    lengths.push_back(static_cast<std::int64_t>(prompt.ids.size()));
  }
  for (const PromptRange& range : divide(lengths)) {
    const std::size_t count = range.end - range.begin;
    trace_group(model, std::span(prompts).subspan(range.begin, count), range.begin, options, log,
                interventions, std::span(traces).subspan(range.begin, count));
  }
  return traces;
}

}  // namespace onset
