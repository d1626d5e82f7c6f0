#include "onset/massive/vocabulary.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "onset/base/error.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

constexpr std::array quantile_levels{0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0};
constexpr double bins_per_decade = 20;

void require_finite(float largest, std::int64_t id, std::int64_t layer) {
  if (std::isfinite(largest)) return;
  throw input_error(
      str_cat("token id ", id, " alone at position 0: the state after layer ", layer,
              " holds NaN or infinity"),
      "`onset inspect MODEL --verify` names the tensors that hold NaN or infinity; --only leaves "
      "the vocabulary out");
}

// M and its dim of every id.
std::vector<VocabularyToken> measure(const Model& model, std::int64_t layer, const Log& log,
                                     const Hooks* interventions) {
  const c10::InferenceMode inference;
  const std::int64_t vocabulary = model.config().vocabulary;
  std::vector<VocabularyToken> tokens;
  SiteSet sites(model.config().layer_count());
  sites.add({SiteKind::resid_post, layer});
  Hooks hooks = edited_as(interventions, model.config().layer_count());
  hooks.observe(sites, [&](const SiteContext&, const at::Tensor& state) {
    auto [largest, dims] = state.abs().max(1);
    largest = largest.to(at::kFloat).contiguous();
    dims = dims.contiguous();
    for (std::int64_t row = 0; row < state.size(0); ++row) {
      require_finite(largest.const_data_ptr<float>()[row], std::ssize(tokens), layer);
      tokens.push_back({.id = std::ssize(tokens),
                        .largest = largest.const_data_ptr<float>()[row],
                        .dim = dims.const_data_ptr<std::int64_t>()[row]});
    }
  });
  for (std::int64_t begin = 0; begin < vocabulary; begin += rows_per_pass) {
    std::vector<SequenceInput> batch;
    for (std::int64_t id = begin; id < std::min(begin + rows_per_pass, vocabulary); ++id) {
      batch.push_back({.ids = {id}, .cache = nullptr});
    }
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks, layer + 1));
    log.step("vocabulary", std::ssize(tokens), vocabulary);
  }
  return tokens;
}

void fill_histogram(const std::vector<VocabularyToken>& sorted, VocabularyResult& result) {
  const auto bin = [](float value) {
    const double decades = std::log10(std::max(static_cast<double>(value), 1e-6));
    return static_cast<std::int64_t>(std::floor(decades * bins_per_decade));
  };
  const std::int64_t first = bin(sorted.front().largest);
  const std::int64_t last = bin(sorted.back().largest);
  for (std::int64_t edge = first; edge <= last + 1; ++edge) {
    result.edges.push_back(static_cast<double>(edge) / bins_per_decade);
  }
  result.counts.assign(result.edges.size() - 1, 0);
  for (const VocabularyToken& token : sorted) {
    ++result.counts[static_cast<std::size_t>(bin(token.largest) - first)];
  }
}

}  // namespace

VocabularyResult scan_vocabulary(const Model& model, const VocabularyQuestion& question,
                                 const Log& log, const Hooks* interventions) {
  std::vector<VocabularyToken> tokens = measure(model, question.layer, log, interventions);
  VocabularyResult result;
  result.layer = question.layer;
  result.threshold = question.threshold;
  result.tokens = std::ssize(tokens);
  for (const VocabularyToken& token : tokens) {
    result.values.push_back(token.largest);
    if (static_cast<double>(token.largest) <= question.threshold) continue;
    ++result.massive;
    const bool there =
        std::find(question.dims.begin(), question.dims.end(), token.dim) != question.dims.end();
    if (there) ++result.massive_at_dims;
  }
  std::stable_sort(
      tokens.begin(), tokens.end(),
      [](const VocabularyToken& a, const VocabularyToken& b) { return a.largest < b.largest; });
  for (const double level : quantile_levels) {
    const auto rank = std::floor(level * static_cast<double>(tokens.size() - 1));
    result.levels.push_back(level);
    result.quantiles.push_back(tokens[static_cast<std::size_t>(rank)].largest);
  }
  fill_histogram(tokens, result);
  for (const VocabularyToken& token : tokens) {
    if (std::ssize(result.small) == question.listed ||
        static_cast<double>(token.largest) > question.threshold) {
      break;
    }
    result.small.push_back(token);
  }
  const auto listed = std::min<std::int64_t>(question.listed, std::ssize(tokens));
  result.largest.assign(tokens.rbegin(), tokens.rbegin() + listed);
  return result;
}

}  // namespace onset
