#include "onset/massive/super_weights.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "onset/model/decoder.h"

namespace onset {
namespace {

// An entry of at least this part of what is added to it counts as one that was there before.
constexpr double notable_entry = 0.1;

double weight_at(const Linear& linear, std::int64_t row, std::int64_t column) {
  const StoredMatrix& stored = linear.stored();
  const at::Tensor values =
      expand({stored.row_range(row, 1), stored.dtype, 1, stored.columns}, at::kFloat);
  return values.select(0, 0).select(0, column).item<double>();
}

// The largest |entry| of [N, C]: signed value, row, column.
struct Largest {
  float value = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

Largest largest_of(const at::Tensor& states) {
  const auto at = states.abs().argmax().item<std::int64_t>();
  const std::int64_t columns = states.size(1);
  return {.value = static_cast<float>(states.reshape({-1}).select(0, at).item<double>()),
          .row = at / columns,
          .column = at % columns};
}

// One pass over the prompt without the given weights.
class Look {
 public:
  Look(const Model& model, const std::vector<SuperWeight>& removed)
      : model_(model), removed_(removed) {}

  std::vector<DownSpike> run(const std::vector<std::int64_t>& ids) {
    const std::int64_t layers = model_.config().layer_count();
    const SiteKind output = model_.config().post_norms ? SiteKind::ffn_raw : SiteKind::ffn_out;
    SiteSet inputs(layers);
    SiteSet outputs(layers);
    SiteSet ends(layers);
    inputs.add_all_layers(SiteKind::ffn_product);
    outputs.add_all_layers(output);
    for (const SiteKind kind : {SiteKind::resid_mid, SiteKind::resid_post}) {
      ends.add_all_layers(kind);
    }
    Hooks hooks(layers);
    hooks.observe(inputs, [&](const SiteContext& context, const at::Tensor& tensor) {
      product_ = tensor;
      const Largest in = largest_of(without_removed_neurons(context.site.layer, tensor));
      spikes_.push_back({.layer = context.site.layer,
                         .module = "ffn",
                         .input = in.value,
                         .input_token = in.row,
                         .neuron = in.column});
    });
    hooks.intervene(outputs, [&](const SiteContext& context, const at::Tensor& tensor) {
      return without_removed(context.site.layer, tensor);
    });
    hooks.observe(outputs, [&](const SiteContext&, const at::Tensor& tensor) {
      const Largest out = largest_of(tensor);
      spikes_.back().output = out.value;
      spikes_.back().output_token = out.row;
      spikes_.back().dim = out.column;
    });
    hooks.observe(ends, [&](const SiteContext& context, const at::Tensor& tensor) {
      if (context.site.kind == SiteKind::resid_mid) {
        before_ = tensor;
        return;
      }
      DownSpike& spike = spikes_.back();
      const auto entry = [&](const at::Tensor& state) {
        return state.select(0, spike.output_token).select(0, spike.dim).item<double>();
      };
      const double before = entry(before_);
      const double added = entry(tensor) - before;
      spike.opposes = before * added < 0 && std::fabs(before) > notable_entry * std::fabs(added);
    });
    const std::vector<SequenceInput> batch{{.ids = ids, .cache = nullptr}};
    static_cast<void>(model_.decoder().forward(batch, LogitRows::none, &hooks));
    return std::move(spikes_);
  }

 private:
  // The input channels of weights that were taken out are done with.
  [[nodiscard]] at::Tensor without_removed_neurons(std::int64_t layer,
                                                   const at::Tensor& product) const {
    at::Tensor edited = product;
    for (const SuperWeight& weight : removed_) {
      if (weight.layer != layer) continue;
      edited = edited.clone();
      edited.select(1, weight.neuron).zero_();
    }
    return edited;
  }

  // A weight set to 0 takes product_j * W[d, j] from the output in dim d.
  [[nodiscard]] at::Tensor without_removed(std::int64_t layer, const at::Tensor& output) const {
    at::Tensor edited = output;
    for (const SuperWeight& weight : removed_) {
      if (weight.layer != layer) continue;
      edited = edited.clone();
      edited.select(1, weight.dim).sub_(product_.select(1, weight.neuron) * weight.weight);
    }
    return edited;
  }

  const Model& model_;
  const std::vector<SuperWeight>& removed_;
  std::vector<DownSpike> spikes_;
  at::Tensor product_;
  at::Tensor before_;  // resid_mid of the block
};

std::optional<SuperWeight> choose(const Model& model, const std::vector<DownSpike>& spikes,
                                  double threshold) {
  const DownSpike* best = nullptr;
  for (const DownSpike& spike : spikes) {
    const bool stands_out = !spike.opposes &&
                            static_cast<double>(std::fabs(spike.input)) > threshold &&
                            static_cast<double>(std::fabs(spike.output)) > threshold;
    if (!stands_out) continue;
    if (best == nullptr || std::fabs(spike.output) > std::fabs(best->output)) best = &spike;
  }
  if (best == nullptr) return std::nullopt;
  const FfnWeights& ffn =
      model.decoder().weights().layers[static_cast<std::size_t>(best->layer)].ffn;
  return SuperWeight{.layer = best->layer,
                     .module = best->module,
                     .dim = best->dim,
                     .neuron = best->neuron,
                     .weight = weight_at(ffn.down, best->dim, best->neuron),
                     .input = best->input,
                     .output = best->output};
}

}  // namespace

SuperWeightResult find_super_weights(const Model& model, const std::vector<std::int64_t>& ids,
                                     const SuperWeightOptions& options, const Log& log) {
  const c10::InferenceMode inference;
  SuperWeightResult result;
  result.options = options;
  std::vector<SuperWeight> removed;
  while (std::ssize(result.looks) < options.looks) {
    SuperWeightLook look;
    look.layers = Look(model, removed).run(ids);
    look.found = choose(model, look.layers, options.threshold);
    const std::optional<SuperWeight> found = look.found;
    result.looks.push_back(std::move(look));
    log.step("super weights", std::ssize(result.looks), options.looks);
    if (!found) break;
    removed.push_back(*found);
  }
  return result;
}

}  // namespace onset
