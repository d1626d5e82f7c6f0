#include "onset/massive/factorial.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "onset/base/error.h"
#include "onset/model/decoder.h"
#include "onset/model/layers.h"

namespace onset {
namespace {

// The lower median of each sequence's rows of `sizes` [N], given to every row: [N]. Of an expert's
// rows, which come from all sequences, one median.
at::Tensor medians_by_sequence(const at::Tensor& sizes, const SiteContext& context) {
  if (is_expert_site(context.site.kind)) return sizes.median().expand_as(sizes);
  at::Tensor medians = at::empty_like(sizes);
  for (const SequenceRows& rows : context.sequences) {
    const at::Tensor part = sizes.narrow(0, rows.row, rows.count);
    medians.narrow(0, rows.row, rows.count).fill_(part.median());
  }
  return medians;
}

// Rows larger than the limit, scaled down to it.
at::Tensor scaled_down(const at::Tensor& rows, const at::Tensor& sizes, const at::Tensor& limits) {
  const at::Tensor factor = (limits / sizes).clamp_max(1.0).nan_to_num(1.0);
  return rows.mul(factor.unsqueeze(1).to(rows.scalar_type()));
}

at::Tensor row_rms(const at::Tensor& rows) { return rows.to(at::kDouble).square().mean(1).sqrt(); }

at::Tensor changed_product(FfnChange change, const SiteContext& context,
                           const at::Tensor& product) {
  const at::Tensor rms = row_rms(product);
  if (change == FfnChange::normalised) {
    return product.div(rms.clamp_min(1e-30).unsqueeze(1).to(product.scalar_type()));
  }
  return scaled_down(product, rms, medians_by_sequence(rms, context));
}

at::Tensor capped_output(double cap, const SiteContext& context, const at::Tensor& out) {
  const at::Tensor norms = out.to(at::kDouble).norm(2, 1);
  return scaled_down(out, norms, medians_by_sequence(norms, context).mul(cap));
}

SiteSet one_site(std::int64_t layers, SiteKind kind, std::int64_t layer) {
  SiteSet sites(layers);
  sites.add({kind, layer});
  return sites;
}

// The products of a dense FFN, or of all experts of a mixture.
SiteSet product_sites(std::int64_t layers, std::int64_t layer) {
  SiteSet sites(layers);
  for (const SiteKind kind :
       {SiteKind::ffn_product, SiteKind::expert_product, SiteKind::shared_product}) {
    sites.add({kind, layer});
  }
  return sites;
}

// Needs what goes into the norm, which is one site earlier in the same pass.
void flatten_norm(const Model& model, Hooks& hooks, std::int64_t layer, double a) {
  const std::int64_t layers = model.config().layer_count();
  const at::Tensor gain =
      model.decoder().weights().layers[static_cast<std::size_t>(layer)].ffn_norm.cpu();
  const at::Tensor mean = gain.mean();
  const at::Tensor flattened = mean + (gain - mean) * a;
  const double eps = model.config().norm_eps;
  const auto input = std::make_shared<at::Tensor>();
  hooks.observe(one_site(layers, SiteKind::resid_mid, layer),
                [input](const SiteContext&, const at::Tensor& tensor) { *input = tensor; });
  hooks.intervene(one_site(layers, SiteKind::ffn_norm, layer),
                  [input, flattened, eps](const SiteContext&, const at::Tensor&) {
                    return rms_norm(*input, flattened, eps);
                  });
}

double mean_log(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return sum / static_cast<double>(values.size());
}

FactorialCell run_cell(const Model& model, const FactorialQuestion& question, double a,
                       FfnChange ffn, const Hooks* interventions, const Log& log) {
  const Installer install =
      behind(interventions, factorial_cell(model, question.layer, a, ffn, question.cap));
  FactorialCell cell;
  cell.a = a;
  cell.ffn = ffn;
  const auto layers = static_cast<std::size_t>(model.config().layer_count());
  const auto at = static_cast<std::size_t>(question.layer);
  std::vector<std::vector<double>> by_layer(layers);
  std::vector<double> of_token;
  std::vector<double> later;
  for (const MassiveTokenOf& prompt : question.prompts) {
    const PromptMeasure measure = measure_prompt(model, prompt.ids, prompt.token, install);
    for (std::size_t l = 0; l < layers; ++l) by_layer[l].push_back(measure.largest[l]);
    of_token.push_back(measure.of_token[at]);
    if (at + 1 < layers) {
      later.push_back(*std::max_element(
          measure.largest.begin() + static_cast<std::ptrdiff_t>(at) + 1, measure.largest.end()));
    }
  }
  for (const auto& values : by_layer) cell.by_layer.push_back(std::exp(mean_log(values)));
  cell.at_layer = cell.by_layer[at];
  cell.of_token = std::exp(mean_log(of_token));
  cell.later = later.empty() ? std::nan("") : std::exp(mean_log(later));
  if (question.text)
    cell.text = measure_text(model, *question.text, question.sinks, install, {}, log);
  return cell;
}

}  // namespace

const FactorialCell* cell_of(const FactorialResult& result, double a, FfnChange ffn) {
  for (const auto& cell : result.cells) {
    if (cell.a == a && cell.ffn == ffn) return &cell;
  }
  return nullptr;
}

std::string_view ffn_change_name(FfnChange change) {
  switch (change) {
    case FfnChange::as_is:
      return "as_is";
    case FfnChange::normalised:
      return "normalised";
    case FfnChange::clamped:
      return "clamped";
    case FfnChange::capped:
      break;
  }
  return "capped";
}

Installer factorial_cell(const Model& model, std::int64_t layer, double a, FfnChange ffn,
                         double cap) {
  return [&model, layer, a, ffn, cap](Hooks& hooks) {
    const std::int64_t layers = model.config().layer_count();
    if (a != 1.0) flatten_norm(model, hooks, layer, a);
    if (ffn == FfnChange::normalised || ffn == FfnChange::clamped) {
      hooks.intervene(product_sites(layers, layer),
                      [ffn](const SiteContext& context, const at::Tensor& product) {
                        return changed_product(ffn, context, product);
                      });
    }
    if (ffn == FfnChange::capped) {
      hooks.intervene(one_site(layers, SiteKind::ffn_out, layer),
                      [cap](const SiteContext& context, const at::Tensor& out) {
                        return capped_output(cap, context, out);
                      });
    }
  };
}

FactorialResult run_factorial(const Model& model, const FactorialQuestion& question, const Log& log,
                              const Hooks* interventions) {
  FactorialResult result;
  result.layer = question.layer;
  result.cap = question.cap;
  result.norm_can_change =
      model.decoder().weights().layers[static_cast<std::size_t>(question.layer)].ffn_norm.defined();
  const std::vector<FfnChange> changes{FfnChange::as_is, FfnChange::normalised, FfnChange::clamped,
                                       FfnChange::capped};
  const std::vector<double> levels =
      result.norm_can_change ? question.flattening : std::vector<double>{1.0};
  const auto total = std::ssize(levels) * std::ssize(changes);
  for (const double a : levels) {
    for (const FfnChange change : changes) {
      const auto steps =
          steps_within(log, str_cat("factorial cells ", std::ssize(result.cells) + 1, "/", total));
      result.cells.push_back(run_cell(model, question, a, change, interventions, steps));
      log.step("factorial cells", std::ssize(result.cells), total);
    }
  }
  for (const double a : levels) {
    if (a == 1.0) continue;
    for (const FfnChange change : changes) {
      if (change == FfnChange::as_is) continue;
      const double value = std::log(cell_of(result, 1.0, FfnChange::as_is)->at_layer) -
                           std::log(cell_of(result, 1.0, change)->at_layer) -
                           std::log(cell_of(result, a, FfnChange::as_is)->at_layer) +
                           std::log(cell_of(result, a, change)->at_layer);
      result.interactions.push_back({.a = a, .ffn = change, .value = value});
    }
  }
  return result;
}

}  // namespace onset
