#include "onset/massive/super_weights.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string>

#include "onset/base/error.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

// An entry of at least this part of what is added to it counts as one that was there before.
constexpr double notable_entry = 0.1;

double weight_at(const Linear& linear, std::int64_t row, std::int64_t column) {
  return linear.dense_row(row, at::kFloat).select(0, column).item<double>();
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

const FfnWeights& module_weights(const LayerWeights& layer, SiteId product) {
  if (product.kind == SiteKind::expert_product) {
    return layer.mixture->experts[static_cast<std::size_t>(product.expert)];
  }
  return product.kind == SiteKind::shared_product ? *layer.mixture->shared : layer.ffn;
}

std::string module_name(SiteId product) {
  if (product.kind == SiteKind::expert_product) return str_cat("experts.", product.expert);
  return product.kind == SiteKind::shared_product ? "shared" : "ffn";
}

SiteSet all_layers(std::int64_t layers, std::initializer_list<SiteKind> kinds) {
  SiteSet sites(layers);
  for (const SiteKind kind : kinds) sites.add_all_layers(kind);
  return sites;
}

// One pass over the prompt without the given weights. Module by module the product is seen, then
// the output, and of each layer the module with the largest output stays.
class Look {
 public:
  Look(const Model& model, const std::vector<SuperWeight>& removed, const Hooks* interventions)
      : model_(model), removed_(removed), interventions_(interventions) {}

  std::vector<DownSpike> run(const std::vector<std::int64_t>& ids) {
    const std::int64_t layers = model_.config().layer_count();
    const SiteKind dense = model_.config().post_norms ? SiteKind::ffn_raw : SiteKind::ffn_out;
    // In a mixture `dense` is the sum of all experts: no module's own output.
    const SiteSet outputs = all_layers(layers, {dense, SiteKind::expert_out, SiteKind::shared_out});
    Hooks hooks = edited_as(interventions_, layers);
    hooks.observe(all_layers(layers, {SiteKind::ffn_norm, SiteKind::router_experts,
                                      SiteKind::router_weights, SiteKind::resid_mid}),
                  [&](const SiteContext& context, const at::Tensor& tensor) {
                    states_[context.site.kind] = tensor;
                  });
    hooks.observe(
        all_layers(layers,
                   {SiteKind::ffn_product, SiteKind::expert_product, SiteKind::shared_product}),
        [&](const SiteContext& context, const at::Tensor& tensor) { see_input(context, tensor); });
    hooks.intervene(outputs, [&](const SiteContext& context, const at::Tensor& tensor) {
      return is_module_output(context) ? without_removed(context, tensor) : tensor;
    });
    hooks.observe(outputs, [&](const SiteContext& context, const at::Tensor& tensor) {
      if (is_module_output(context)) see_output(context, tensor);
    });
    hooks.observe(all_layers(layers, {SiteKind::resid_post}),
                  [&](const SiteContext&, const at::Tensor& tensor) { see_end(tensor); });
    const std::vector<SequenceInput> batch{{.ids = ids, .cache = nullptr}};
    static_cast<void>(model_.decoder().forward(batch, LogitRows::none, &hooks));
    return std::move(spikes_);
  }

 private:
  [[nodiscard]] bool is_module_output(const SiteContext& context) const {
    const bool of_expert =
        context.site.kind == SiteKind::expert_out || context.site.kind == SiteKind::shared_out;
    return of_expert || !model_.config().is_mixture(context.site.layer);
  }

  void see_input(const SiteContext& context, const at::Tensor& tensor) {
    product_ = tensor;
    product_site_ = context.site;
    spike_ = {};
    spike_.layer = context.site.layer;
    spike_.module = module_name(context.site);
    // The input channels of weights that were taken out are done with.
    at::Tensor open = tensor;
    for_each_removed([&](const SuperWeight& weight) {
      open = open.clone();
      open.select(1, weight.neuron).zero_();
    });
    const Largest in = largest_of(open);
    spike_.input = in.value;
    spike_.input_token = packed_row(context, in.row);
    spike_.neuron = in.column;
  }

  // A weight set to 0 takes factor * product_j * W[d, j] from the output in dim d.
  at::Tensor without_removed(const SiteContext& context, const at::Tensor& output) {
    at::Tensor edited = output;
    for_each_removed([&](const SuperWeight& weight) {
      edited = edited.clone();
      at::Tensor part = product_.select(1, weight.neuron) * weight.weight;
      if (const at::Tensor factors = row_factors(context); factors.defined()) part = part * factors;
      edited.select(1, weight.dim).sub_(part);
    });
    return edited;
  }

  void see_output(const SiteContext& context, const at::Tensor& tensor) {
    const Largest out = largest_of(tensor);
    spike_.output = out.value;
    spike_.output_token = packed_row(context, out.row);
    spike_.dim = out.column;
    if (spikes_.empty() || spikes_.back().layer != spike_.layer) {
      spikes_.push_back(spike_);
    } else if (std::fabs(spike_.output) > std::fabs(spikes_.back().output)) {
      spikes_.back() = spike_;
    }
  }

  void see_end(const at::Tensor& resid_post) {
    DownSpike& spike = spikes_.back();
    const auto entry = [&](const at::Tensor& state) {
      return state.select(0, spike.output_token).select(0, spike.dim).item<double>();
    };
    const double before = entry(states_[SiteKind::resid_mid]);
    const double added = entry(resid_post) - before;
    spike.opposes = before * added < 0 && std::fabs(before) > notable_entry * std::fabs(added);
  }

  template <typename Visit>
  void for_each_removed(const Visit& visit) const {
    for (const SuperWeight& weight : removed_) {
      if (weight.layer == product_site_.layer && weight.module == spike_.module) visit(weight);
    }
  }

  static std::int64_t packed_row(const SiteContext& context, std::int64_t row) {
    return context.rows.empty() ? row : context.rows[static_cast<std::size_t>(row)];
  }

  // What each row of a module's output was multiplied with; undefined for 1.
  at::Tensor row_factors(const SiteContext& context) {
    if (context.site.kind == SiteKind::expert_out) {
      const std::vector<std::int64_t> rows(context.rows.begin(), context.rows.end());
      const at::Tensor index = at::tensor(rows, at::kLong);
      const at::Tensor here =
          states_[SiteKind::router_experts].index_select(0, index).eq(context.site.expert);
      const at::Tensor weights = states_[SiteKind::router_weights].index_select(0, index);
      return (weights * here.to(weights.scalar_type())).sum(1);
    }
    if (context.site.kind != SiteKind::shared_out || !model_.config().mixture.shared_gate) {
      return {};
    }
    const LayerWeights& weights =
        model_.decoder().weights().layers[static_cast<std::size_t>(context.site.layer)];
    return at::sigmoid(weights.mixture->shared_gate(states_[SiteKind::ffn_norm])).select(1, 0);
  }

  const Model& model_;
  const std::vector<SuperWeight>& removed_;
  const Hooks* interventions_;
  std::vector<DownSpike> spikes_;
  std::map<SiteKind, at::Tensor> states_;  // of the block that runs
  // The module that runs.
  DownSpike spike_;
  SiteId product_site_;
  at::Tensor product_;
};

// The site of a spike's product.
SiteId product_site(const DownSpike& spike) {
  if (spike.module == "ffn") return {SiteKind::ffn_product, spike.layer};
  if (spike.module == "shared") return {SiteKind::shared_product, spike.layer};
  return {SiteKind::expert_product, spike.layer,
          std::stoll(spike.module.substr(spike.module.find('.') + 1))};
}

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
  const FfnWeights& ffn = module_weights(
      model.decoder().weights().layers[static_cast<std::size_t>(best->layer)], product_site(*best));
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
                                     const SuperWeightOptions& options, const Log& log,
                                     const Hooks* interventions) {
  const c10::InferenceMode inference;
  SuperWeightResult result;
  result.options = options;
  std::vector<SuperWeight> removed;
  while (std::ssize(result.looks) < options.looks) {
    SuperWeightLook look;
    look.layers = Look(model, removed, interventions).run(ids);
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
