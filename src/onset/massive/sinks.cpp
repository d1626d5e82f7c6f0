#include "onset/massive/sinks.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "onset/base/error.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

void check(std::span<const std::vector<std::int64_t>> samples, const SinkOptions& options) {
  if (samples.empty()) throw usage_error("sinks need at least one sample");
  if (!(options.threshold >= 0 && options.threshold <= 1)) {
    throw usage_error(str_cat("a sink threshold of ", options.threshold, " is not in 0 to 1"));
  }
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const auto length = static_cast<std::int64_t>(samples[s].size());
    if (options.key >= 0 && options.key <= length - 2) continue;
    throw usage_error(
        str_cat("sample ", s, " has ", length, " tokens: no query follows token ", options.key),
        "a sample needs two tokens more than the number of the token it is asked about");
  }
}

void check_finite(const SequenceSinks& sequence, std::size_t sample) {
  for (std::size_t l = 0; l < sequence.layers.size(); ++l) {
    const LayerSinks& layer = sequence.layers[l];
    for (std::size_t h = 0; layer.queries > 0 && h < layer.alpha.size(); ++h) {
      if (std::isfinite(layer.alpha[h])) continue;
      throw input_error(
          str_cat("sample ", sample, ": attention of layer ", l, ", head ", h, " is not finite"),
          "`onset inspect MODEL --verify` names the tensors that hold NaN or infinity");
    }
  }
}

std::optional<MostAttended> most_attended(std::span<const SequenceSinks> samples,
                                          std::size_t layer) {
  std::vector<double> mass = samples.front().layers[layer].key_mass;
  for (const SequenceSinks& sample : samples.subspan(1)) {
    const std::vector<double>& more = sample.layers[layer].key_mass;
    if (more.size() != mass.size()) return std::nullopt;
    for (std::size_t j = 0; j < mass.size(); ++j) mass[j] += more[j];
  }
  const auto largest = std::max_element(mass.begin(), mass.end());
  if (largest == mass.end() || !(*largest > 0)) return std::nullopt;
  return MostAttended{.key = largest - mass.begin(),
                      .mass = *largest / static_cast<double>(samples.size())};
}

double uniform_alpha(std::span<const std::vector<std::int64_t>> samples, std::int64_t key,
                     std::int64_t window) {
  double sum = 0;
  std::int64_t seeing = 0;
  for (const auto& ids : samples) {
    const auto length = static_cast<std::int64_t>(ids.size());
    const std::int64_t end = window > 0 ? std::min(length, key + window) : length;
    if (end <= key + 1) continue;
    double sample = 0;
    for (std::int64_t i = key + 1; i < end; ++i) {
      sample += 1.0 / static_cast<double>(window > 0 ? std::min(i + 1, window) : i + 1);
    }
    sum += sample / static_cast<double>(end - key - 1);
    ++seeing;
  }
  return seeing > 0 ? sum / static_cast<double>(seeing) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

SinksResult measure_sinks(const Model& model, std::span<const std::vector<std::int64_t>> samples,
                          const SinkOptions& options, const Log& log, const Hooks* interventions) {
  check(samples, options);
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  std::vector<std::int64_t> lengths;
  for (const auto& ids : samples) lengths.push_back(static_cast<std::int64_t>(ids.size()));
  const auto ranges = divide(lengths);

  SinkMeter meter(model.config(), options);
  Hooks hooks = edited_as(interventions, layers);
  meter.observe(hooks);
  SiteSet ends(layers);
  ends.add_all_layers(SiteKind::resid_post);
  std::int64_t done = 0;
  std::vector<double> key_max_abs(static_cast<std::size_t>(layers));
  hooks.observe(ends, [&](const SiteContext& context, const at::Tensor& state) {
    double& sum = key_max_abs[static_cast<std::size_t>(context.site.layer)];
    for (const SequenceRows& rows : context.sequences) {
      sum += state.select(0, rows.row + options.key).abs().max().item<double>();
    }
    log.step("layers", ++done, layers * static_cast<std::int64_t>(ranges.size()));
  });
  for (const PromptRange& range : ranges) {
    std::vector<SequenceInput> batch;
    for (std::size_t s = range.begin; s < range.end; ++s) batch.push_back({.ids = samples[s]});
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  }

  SinksResult result;
  result.options = options;
  for (const double sum : key_max_abs) {
    result.key_max_abs.push_back(sum / static_cast<double>(samples.size()));
  }
  result.samples = meter.sequences();
  for (std::size_t s = 0; s < result.samples.size(); ++s) check_finite(result.samples[s], s);
  result.summary = summarise(result.samples, options.threshold);
  for (std::size_t l = 0; l < static_cast<std::size_t>(layers); ++l) {
    result.most_attended.push_back(most_attended(result.samples, l));
    result.uniform_alpha.push_back(
        uniform_alpha(samples, options.key, model.config().layers[l].sliding_window));
  }
  return result;
}

std::vector<std::vector<std::int64_t>> cut_samples(std::span<const std::int64_t> ids,
                                                   std::int64_t length, std::int64_t most,
                                                   std::optional<std::int64_t> first) {
  if (length < 2) {
    throw usage_error(str_cat("samples of ", length, " tokens: no query looks back"),
                      "a sample needs at least 2 tokens");
  }
  std::vector<std::vector<std::int64_t>> samples;
  std::size_t begin = 0;
  while (most == 0 || static_cast<std::int64_t>(samples.size()) < most) {
    std::vector<std::int64_t> sample;
    if (first && begin < ids.size() && ids[begin] != *first) sample.push_back(*first);
    const std::size_t wanted = static_cast<std::size_t>(length) - sample.size();
    if (ids.size() - begin < wanted) break;
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    sample.insert(sample.end(), from, from + static_cast<std::ptrdiff_t>(wanted));
    begin += wanted;
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::int64_t most_frequent_token(std::span<const std::vector<std::int64_t>> samples) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const auto& ids : samples) {
    for (const std::int64_t id : ids) ++counts[id];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->first;
}

}  // namespace onset
