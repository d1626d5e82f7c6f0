#include "onset/massive/attribution.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onset/base/error.h"
#include "onset/massive/block_rows.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

// Neurons of which it is told what they read, and how many terms of it.
constexpr std::size_t neurons_read = 3;
constexpr std::int64_t terms_told = 4;
// Below this the shares of a sum say nothing.
constexpr double smallest_sum = 1.0;

at::Tensor as_double(const at::Tensor& tensor) { return tensor.to(at::kDouble).contiguous(); }

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor row = as_double(tensor).reshape({-1});
  return {row.const_data_ptr<double>(), row.const_data_ptr<double>() + row.numel()};
}

std::vector<double> matrix_row(const Linear& linear, std::int64_t row) {
  return values_of(linear.dense_row(row, at::kDouble));
}

double bias_of(const Linear& linear, std::int64_t row) {
  return linear.bias().defined() ? linear.bias().select(0, row).item<double>() : 0.0;
}

// gain_dim / rms of the raw output, or 1 without a norm behind the module.
double post_factor(const at::Tensor& gain, const BlockRow& row, SiteKind raw, std::int64_t dim,
                   double eps) {
  if (!gain.defined()) return 1.0;
  const auto mean_square = as_double(row.at(raw)).square().mean().item<double>();
  return gain.select(0, dim).item<double>() / std::sqrt(mean_square + eps);
}

// One neuron's place among all modules of a block.
struct NeuronIndex {
  std::size_t module = 0;
  std::int64_t neuron = 0;
  double contribution = 0;
};

bool larger(const NeuronIndex& a, const NeuronIndex& b) {
  const double x = std::fabs(a.contribution);
  const double y = std::fabs(b.contribution);
  if (x != y) return x > y;
  return a.module != b.module ? a.module < b.module : a.neuron < b.neuron;
}

// The largest terms of row `neuron` of a projection, and the one of `dim`.
std::vector<ProjectionTerm> projection_terms(const Linear& linear, std::int64_t neuron,
                                             const std::vector<double>& input, std::int64_t dim,
                                             double& from_dim) {
  const std::vector<double> weights = matrix_row(linear, neuron);
  std::vector<ProjectionTerm> terms;
  for (std::size_t d = 0; d < weights.size(); ++d) {
    terms.push_back({.dim = static_cast<std::int64_t>(d),
                     .input = input[d],
                     .weight = weights[d],
                     .contribution = input[d] * weights[d]});
  }
  from_dim = terms[static_cast<std::size_t>(dim)].contribution;
  const auto told = std::min<std::ptrdiff_t>(terms_told, std::ssize(terms));
  std::partial_sort(terms.begin(), terms.begin() + told, terms.end(),
                    [](const ProjectionTerm& a, const ProjectionTerm& b) {
                      return std::fabs(a.contribution) > std::fabs(b.contribution);
                    });
  terms.resize(static_cast<std::size_t>(told));
  return terms;
}

class NeuronAttributor {
 public:
  NeuronAttributor(const Model& model, const BlockRow& row, EntryAttribution& result)
      : modules_(ffn_modules(model, row)), result_(result) {
    for (std::size_t m = 0; m < modules_.size(); ++m) add_module(m);
    std::sort(order_.begin(), order_.end(), larger);
    result_.neuron_count = std::ssize(order_);
    result_.ffn_difference = result_.neuron_sum - static_cast<double>(result_.ffn_out);
    if (order_.empty()) return;
    result_.largest_neuron = std::fabs(order_.front().contribution);
    count_90_percent();
  }

  void list(std::int64_t top) {
    const double sign = result_.resid_pre < 0 ? -1.0 : 1.0;
    for (const NeuronIndex& index : order_) {
      const bool opposes = index.contribution * sign < 0;
      if (std::ssize(result_.neurons) < top) result_.neurons.push_back(part(index, true));
      if (opposes && std::ssize(result_.opposing) < top) {
        result_.opposing.push_back(part(index, false));
      }
      if (std::ssize(result_.neurons) >= top && std::ssize(result_.opposing) >= top) break;
    }
  }

 private:
  void add_module(std::size_t m) {
    const FfnModule& module = modules_[m];
    const double factor = module.factor * result_.ffn_factor;
    const std::vector<double> weights = matrix_row(module.weights->down, result_.dim);
    const std::vector<double> products = values_of(module.product);
    double sum = bias_of(module.weights->down, result_.dim) * factor;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const double contribution = products[j] * weights[j] * factor;
      order_.push_back({m, static_cast<std::int64_t>(j), contribution});
      sum += contribution;
    }
    result_.modules.push_back({.module = module.name, .contribution = sum});
    result_.neuron_sum += sum;
  }

  void count_90_percent() {
    const double total = std::accumulate(
        order_.begin(), order_.end(), 0.0,
        [](double sum, const NeuronIndex& index) { return sum + std::fabs(index.contribution); });
    double sum = 0;
    for (const NeuronIndex& index : order_) {
      if (sum >= 0.9 * total) break;
      sum += std::fabs(index.contribution);
      ++result_.neurons_for_90_percent;
    }
  }

  [[nodiscard]] NeuronPart part(const NeuronIndex& index, bool reads) const {
    const FfnModule& module = modules_[index.module];
    const auto at = [&](const at::Tensor& row) {
      return row.select(0, index.neuron).item<double>();
    };
    NeuronPart part{.module = module.name,
                    .neuron = index.neuron,
                    .gate = at(module.gate),
                    .up = at(module.up),
                    .product = at(module.product),
                    .weight = matrix_row(module.weights->down,
                                         result_.dim)[static_cast<std::size_t>(index.neuron)],
                    .contribution = index.contribution};
    if (std::fabs(result_.neuron_sum) >= smallest_sum) {
      part.share = index.contribution / result_.neuron_sum;
    }
    if (!reads || result_.neurons.size() >= neurons_read) return part;
    const std::vector<double> input = values_of(module.input);
    part.gate_terms = projection_terms(module.weights->gate, index.neuron, input, result_.dim,
                                       part.gate_from_dim);
    part.up_terms =
        projection_terms(module.weights->up, index.neuron, input, result_.dim, part.up_from_dim);
    return part;
  }

  std::vector<FfnModule> modules_;
  EntryAttribution& result_;
  std::vector<NeuronIndex> order_;
};

void attribute_heads(const LayerWeights& weights, const BlockRow& row, EntryAttribution& result) {
  const at::Tensor heads = as_double(row.at(SiteKind::attn_heads));  // [H, K]
  const std::vector<double> columns = matrix_row(weights.attention.o, result.dim);
  const at::Tensor projection =
      at::tensor(columns, at::kDouble).view({heads.size(0), heads.size(1)});
  const std::vector<double> sums = values_of((heads * projection).sum(1) * result.attn_factor);
  result.head_sum = bias_of(weights.attention.o, result.dim) * result.attn_factor;
  for (std::size_t h = 0; h < sums.size(); ++h) {
    result.heads.push_back({.head = static_cast<std::int64_t>(h), .contribution = sums[h]});
    result.head_sum += sums[h];
  }
  result.attn_difference = result.head_sum - static_cast<double>(result.attn_out);
}

EntryAttribution attribute(const Model& model, const BlockRow& row, std::int64_t dim,
                           std::int64_t top) {
  const LayerWeights& weights =
      model.decoder().weights().layers[static_cast<std::size_t>(row.layer)];
  const double eps = model.config().norm_eps;
  EntryAttribution result;
  result.layer = row.layer;
  result.token = row.token;
  result.dim = dim;
  result.resid_pre = row.value(SiteKind::resid_pre, dim);
  result.attn_out = row.value(SiteKind::attn_out, dim);
  result.ffn_out = row.value(SiteKind::ffn_out, dim);
  result.resid_post = row.value(SiteKind::resid_post, dim);
  result.ffn_factor = post_factor(weights.ffn_post_norm, row, SiteKind::ffn_raw, dim, eps);
  result.attn_factor = post_factor(weights.attn_post_norm, row, SiteKind::attn_raw, dim, eps);
  if (weights.ffn_norm.defined()) {
    result.ffn_norm_gain = weights.ffn_norm.select(0, dim).item<double>();
  }
  NeuronAttributor(model, row, result).list(top);
  attribute_heads(weights, row, result);
  return result;
}

}  // namespace

std::vector<EntryAttribution> attribute_entries(const Model& model,
                                                const std::vector<std::int64_t>& ids,
                                                std::span<const EntryPlace> places,
                                                std::int64_t top, const Hooks* interventions) {
  const ModelConfig& config = model.config();
  std::vector<BlockPlace> blocks;
  for (const EntryPlace& place : places) {
    if (place.layer < 0 || place.layer >= config.layer_count() || place.token < 0 ||
        place.token >= std::ssize(ids) || place.dim < 0 || place.dim >= config.hidden) {
      throw usage_error(
          str_cat("there is no layer ", place.layer, ", token ", place.token, ", dim ", place.dim),
          str_cat("the model has layers 0 to ", config.layer_count() - 1, " and dims 0 to ",
                  config.hidden - 1, ", the prompt tokens 0 to ", std::ssize(ids) - 1));
    }
    blocks.push_back({.layer = place.layer, .token = place.token});
  }
  std::vector<EntryAttribution> results;
  if (blocks.empty()) return results;
  const c10::InferenceMode inference;
  const std::vector<BlockRow> rows = capture_block_rows(model, ids, blocks, interventions);
  for (std::size_t i = 0; i < places.size(); ++i) {
    results.push_back(attribute(model, rows[i], places[i].dim, top));
  }
  return results;
}

}  // namespace onset
