#include "onset/massive/explain.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "onset/base/error.h"
#include "onset/massive/block_rows.h"
#include "onset/model/model.h"

namespace onset {
namespace {

// What all parts share.
struct Setting {
  const Model& model;
  const ScanResult& scan;
  const std::optional<ExperimentText>& text;
  const ExplainOptions& options;
  const ExplainTarget& target;
  const Log& log;
  const Hooks* interventions;
  std::vector<Stage> stages = {};  // of the shown token

  [[nodiscard]] const TargetToken& shown() const { return target.tokens[target.shown]; }
  [[nodiscard]] const PromptScan& shown_prompt() const { return scan.prompts[shown().prompt]; }
  [[nodiscard]] std::vector<MassiveTokenOf> prompts() const {
    std::vector<MassiveTokenOf> result;
    for (const TargetToken& token : target.tokens) {
      result.push_back({.ids = scan.prompts[token.prompt].ids, .token = token.token});
    }
    return result;
  }
  [[nodiscard]] SinkOptions sinks() const {
    return {.key = target.position.value_or(0), .threshold = options.sink_threshold};
  }
};

// Falls behind the layer belong to the part of that name.
bool is_fall_behind(const Stage& stage, std::int64_t layer) {
  return stage.kind == StageKind::fall && stage.layer > layer;
}

// Those of the scan are of the token with the largest entry, which may be another.
std::vector<Stage> shown_stages(const Setting& setting) {
  const PromptScan& prompt = setting.shown_prompt();
  const std::int64_t token = setting.shown().token;
  if (!prompt.stages.empty() && prompt.stages.front().token == token) return prompt.stages;
  return token_stages(setting.model, {prompt.text, prompt.ids}, token, setting.scan.options,
                      setting.interventions);
}

std::vector<StageAttribution> attribute_stages(const Setting& setting, bool falls_behind) {
  std::vector<StageAttribution> result;
  std::vector<EntryPlace> places;
  for (const Stage& stage : setting.stages) {
    if (is_fall_behind(stage, setting.target.layer) != falls_behind) continue;
    result.push_back({.stage = stage, .entry = {}});
    places.push_back({.layer = stage.layer, .token = stage.token, .dim = stage.dim});
  }
  std::vector<EntryAttribution> entries =
      attribute_entries(setting.model, setting.shown_prompt().ids, places, setting.options.top,
                        setting.interventions);
  for (std::size_t i = 0; i < entries.size(); ++i) result[i].entry = std::move(entries[i]);
  return result;
}

FfnResult explain_ffn(const Setting& setting) {
  FfnResult result;
  const auto& ids = setting.shown_prompt().ids;
  const std::int64_t token = setting.shown().token;
  std::vector<EntryPlace> places;
  for (const std::int64_t dim : setting.target.dims) {
    places.push_back({.layer = setting.target.layer, .token = token, .dim = dim});
  }
  result.entries =
      attribute_entries(setting.model, ids, places, setting.options.top, setting.interventions);
  result.stages = attribute_stages(setting, false);
  result.super_weights =
      find_super_weights(setting.model, ids, {}, setting.log, setting.interventions);
  result.singular = read_singular(setting.model, ids, setting.target.layer, token,
                                  setting.target.dims, setting.interventions);
  return result;
}

FallResult explain_fall(const Setting& setting) {
  FallResult result;
  result.stages = attribute_stages(setting, true);
  result.threshold = setting.scan.options.min_abs;
  result.last_layer = setting.model.config().layer_count() - 1;
  const c10::InferenceMode inference;
  const std::vector<BlockPlace> last{{.layer = result.last_layer, .token = setting.shown().token}};
  result.last_largest =
      capture_block_rows(setting.model, setting.shown_prompt().ids, last, setting.interventions)
          .front()
          .at(SiteKind::resid_post)
          .abs()
          .max()
          .item<double>();
  return result;
}

FactorialResult explain_factorial(const Setting& setting) {
  FactorialQuestion question;
  question.layer = setting.target.layer;
  question.prompts = setting.prompts();
  question.text = setting.text;
  question.sinks = setting.sinks();
  return run_factorial(setting.model, question, setting.log, setting.interventions);
}

// The largest entry of the shown token that is not among the dims.
std::int64_t control_dim(const Setting& setting) {
  const c10::InferenceMode inference;
  const std::vector<BlockPlace> place{
      {.layer = setting.target.layer, .token = setting.shown().token}};
  at::Tensor sizes =
      capture_block_rows(setting.model, setting.shown_prompt().ids, place, setting.interventions)
          .front()
          .at(SiteKind::resid_post)
          .abs();
  for (const std::int64_t dim : setting.target.dims) sizes.select(0, dim).zero_();
  return sizes.argmax().item<std::int64_t>();
}

// Does attention, and not the FFN, write most of the shown entry?
bool attention_writes(const Setting& setting) {
  const c10::InferenceMode inference;
  const std::vector<BlockPlace> place{
      {.layer = setting.target.layer, .token = setting.shown().token}};
  const BlockRow row = std::move(
      capture_block_rows(setting.model, setting.shown_prompt().ids, place, setting.interventions)
          .front());
  const std::int64_t dim = setting.target.dims.front();
  return std::fabs(row.value(SiteKind::attn_out, dim)) >
         std::fabs(row.value(SiteKind::ffn_out, dim));
}

DoseResult explain_dose(const Setting& setting) {
  DoseQuestion question;
  question.entries = {.layer = setting.target.layer,
                      .dims = setting.target.dims,
                      .position = setting.target.position,
                      .min_abs = setting.scan.options.min_abs,
                      .min_ratio = setting.scan.options.min_ratio};
  question.mean = setting.target.mean;
  question.control_dim = control_dim(setting);
  question.sinks = setting.sinks();
  question.control_position = question.sinks.key + 1;
  question.attention_writes = attention_writes(setting);
  question.text = *setting.text;
  return run_doses(setting.model, question, setting.log, setting.interventions);
}

// Whether the experiments on the text can edit the token: it stands in the samples for the sinks,
// with a query behind it. Says so where not.
bool is_in_samples(const Setting& setting) {
  std::size_t longest = 0;
  for (const auto& sample : setting.text->samples) longest = std::max(longest, sample.size());
  const std::int64_t position = setting.target.position.value_or(0);
  if (position + 1 < static_cast<std::int64_t>(longest)) return true;
  setting.log.warning(str_cat("token ", position, " is beyond the text's samples of ", longest,
                              " tokens, so that doses cannot be measured: they are left out"));
  return false;
}

}  // namespace

ExplainResult explain(const Model& model, const ScanResult& scan, const ExplainTarget& target,
                      const std::optional<ExperimentText>& text, const ExplainOptions& options,
                      const Log& log, const Hooks* interventions) {
  ExplainResult result;
  result.target = target;
  Setting setting{model, scan, text, options, result.target, log, interventions};
  const ExplainParts& parts = options.parts;
  if (parts.ffn || parts.fall) setting.stages = shown_stages(setting);
  if (parts.norm) {
    result.norm = analyse_norms(model,
                                {.layer = result.target.layer,
                                 .dims = result.target.dims,
                                 .prompts = setting.prompts(),
                                 .shown = result.target.shown},
                                log, interventions);
  }
  if (parts.ffn) result.ffn = explain_ffn(setting);
  if (parts.factorial) result.factorial = explain_factorial(setting);
  if (parts.fall) result.fall = explain_fall(setting);
  if (parts.vocabulary) {
    result.vocabulary = scan_vocabulary(model,
                                        {.layer = result.target.layer,
                                         .dims = result.target.dims,
                                         .threshold = result.target.threshold},
                                        log, interventions);
  }
  if (parts.dose && text && is_in_samples(setting)) result.dose = explain_dose(setting);
  return result;
}

}  // namespace onset
