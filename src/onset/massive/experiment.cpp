#include "onset/massive/experiment.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "onset/base/error.h"
#include "onset/model/batches.h"
#include "onset/model/decoder.h"

namespace onset {

Installer behind(const Hooks* interventions, Installer condition) {
  if (interventions == nullptr) return condition;
  return [interventions, condition = std::move(condition)](Hooks& hooks) {
    hooks.add_interventions(*interventions);
    condition(hooks);
  };
}

ExperimentText experiment_text(std::vector<std::int64_t> ids, const WindowOptions& windows,
                               std::int64_t length, std::int64_t most) {
  ExperimentText text;
  text.windows = windows;
  const std::int64_t room = length - (windows.bos ? 1 : 0);
  for (std::int64_t begin = 0; begin + room <= std::ssize(ids); begin += room) {
    if (std::ssize(text.samples) == most) break;
    std::vector<std::int64_t>& sample = text.samples.emplace_back();
    if (windows.bos) sample.push_back(*windows.bos);
    sample.insert(sample.end(), ids.begin() + begin, ids.begin() + begin + room);
  }
  text.ids = std::move(ids);
  return text;
}

Log steps_within(const Log& log, std::string part) {
  if (!log.progress) return log;
  return {.warn = log.warn,
          .progress = [progress = log.progress, part = std::move(part)](
                          const std::string& what, std::int64_t done, std::int64_t total) {
            progress(str_cat(part, ", ", what), done, total);
          }};
}

TextMeasure measure_text(const Model& model, const ExperimentText& text, const SinkOptions& sinks,
                         const Installer& install, const Installer& also, const Log& log) {
  const c10::InferenceMode inference;
  TextMeasure result;
  const std::int64_t layers = model.config().layer_count();
  Hooks scoring(layers);
  install(scoring);
  const TextScore score = score_text(model, text.ids, text.windows, &scoring, log);
  result.perplexity = score.perplexity();
  result.scored_tokens = score.scored_tokens;

  Hooks hooks(layers);
  install(hooks);
  SinkMeter meter(model.config(), sinks);
  meter.observe(hooks);
  if (also) also(hooks);
  std::vector<std::int64_t> lengths;
  for (const auto& sample : text.samples) lengths.push_back(std::ssize(sample));
  for (const PromptRange& range : divide(lengths)) {
    std::vector<SequenceInput> batch;
    for (std::size_t s = range.begin; s < range.end; ++s) {
      batch.push_back({.ids = text.samples[s], .cache = nullptr});
    }
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  }
  result.sinks = summarise(meter.sequences(), sinks.threshold);
  return result;
}

double sinks_behind(const SinkSummary& sinks, std::int64_t layer) {
  double sum = 0;
  double count = 0;
  for (auto l = static_cast<std::size_t>(layer) + 1; l < sinks.layer_rate.size(); ++l) {
    if (std::isnan(sinks.layer_rate[l])) continue;
    sum += sinks.layer_rate[l];
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

PromptMeasure measure_prompt(const Model& model, const std::vector<std::int64_t>& ids,
                             std::int64_t token, const Installer& install) {
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  PromptMeasure result;
  Hooks hooks(layers);
  install(hooks);
  SiteSet sites(layers);
  sites.add_all_layers(SiteKind::resid_post);
  hooks.observe(sites, [&](const SiteContext&, const at::Tensor& tensor) {
    result.largest.push_back(tensor.abs().max().item<double>());
    result.of_token.push_back(tensor.select(0, token).abs().max().item<double>());
  });
  const std::vector<SequenceInput> batch{{.ids = ids, .cache = nullptr}};
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  return result;
}

}  // namespace onset
