// The JSON of what is explained and of its exact parts: target, norm, FFN, fall.

#include "onset/massive/explain_json.h"

#include "onset/massive/explain_json_parts.h"
#include "onset/massive/stage_json.h"

namespace onset {
namespace {

OrderedJson concentration_json(const Concentration& c) {
  return {{"top1", finite_or_null(c.top1)},
          {"top4", finite_or_null(c.top4)},
          {"top16", finite_or_null(c.top16)},
          {"gain_top1", finite_or_null(c.gain_top1)},
          {"gain_top4", finite_or_null(c.gain_top4)},
          {"gain_top16", finite_or_null(c.gain_top16)},
          {"participation_ratio", finite_or_null(c.participation)},
          {"kl_from_others", finite_or_null(c.divergence)}};
}

OrderedJson reading_json(const NormReading& reading) {
  return {{"rms", finite_or_null(reading.rms)},
          {"input_norm", finite_or_null(reading.input_norm)},
          {"output_norm", finite_or_null(reading.output_norm)},
          {"amplification", finite_or_null(reading.amplification)},
          {"before_gain", concentration_json(reading.before)},
          {"after_gain", concentration_json(reading.after)},
          {"rank_correlation", finite_or_null(reading.rank_correlation)}};
}

OrderedJson norm_dim_json(const NormDim& row) {
  return {{"dim", row.dim},
          {"x", finite_or_null(row.x)},
          {"x_hat", finite_or_null(row.normalised)},
          {"gain", finite_or_null(row.gain)},
          {"gain_rank", row.gain_rank},
          {"product", finite_or_null(row.product)},
          {"energy_before", finite_or_null(row.energy_before)},
          {"energy_after", finite_or_null(row.energy_after)},
          {"others_product", finite_or_null(row.others_product)}};
}

OrderedJson analysis_json(const NormAnalysis& norm) {
  return {{"layer", norm.layer},
          {"token", reading_json(norm.token)},
          {"tokens", array_json(norm.tokens, reading_json)},
          {"others", norm.others ? reading_json(*norm.others) : OrderedJson(nullptr)},
          {"other_count", norm.other_count},
          {"relative_amplification", finite_or_null(norm.relative_amplification)},
          {"massive_dims", array_json(norm.massive_dims, norm_dim_json)},
          {"top_dims", array_json(norm.top_dims, norm_dim_json)},
          {"energy_curve",
           {{"dims", norm.curve.dims},
            {"before", numbers_json(norm.curve.before)},
            {"after", numbers_json(norm.curve.after)},
            {"others_before", numbers_json(norm.curve.others_before)},
            {"others_after", numbers_json(norm.curve.others_after)}}},
          {"x", floats_json(norm.x)},
          {"gain", floats_json(norm.gain)},
          {"product", floats_json(norm.product)}};
}

OrderedJson gains_json(const LayerGains& gains) {
  return {{"layer", gains.layer},
          {"quantiles", numbers_json(gains.quantiles)},
          {"mean", finite_or_null(gains.mean)},
          {"at_dims", numbers_json(gains.at_dims)},
          {"percentiles", numbers_json(gains.percentiles)},
          {"amplification", finite_or_null(gains.amplification)},
          {"others_amplification", finite_or_null(gains.others_amplification)}};
}

OrderedJson term_json(const ProjectionTerm& term) {
  return {{"dim", term.dim},
          {"input", finite_or_null(term.input)},
          {"weight", finite_or_null(term.weight)},
          {"contribution", finite_or_null(term.contribution)}};
}

OrderedJson neuron_json(const NeuronPart& neuron) {
  OrderedJson row{{"module", neuron.module},
                  {"neuron", neuron.neuron},
                  {"gate", finite_or_null(neuron.gate)},
                  {"up", finite_or_null(neuron.up)},
                  {"product", finite_or_null(neuron.product)},
                  {"weight", finite_or_null(neuron.weight)},
                  {"contribution", finite_or_null(neuron.contribution)},
                  {"share", number_or_null(neuron.share)}};
  if (!neuron.gate_terms.empty()) {
    row["reads"] = {{"gate", array_json(neuron.gate_terms, term_json)},
                    {"up", array_json(neuron.up_terms, term_json)},
                    {"gate_from_dim", finite_or_null(neuron.gate_from_dim)},
                    {"up_from_dim", finite_or_null(neuron.up_from_dim)}};
  }
  return row;
}

OrderedJson entry_json(const EntryAttribution& entry) {
  return {{"layer", entry.layer},
          {"token", entry.token},
          {"dim", entry.dim},
          {"resid_pre", float_or_null(entry.resid_pre)},
          {"attn_out", float_or_null(entry.attn_out)},
          {"ffn_out", float_or_null(entry.ffn_out)},
          {"resid_post", float_or_null(entry.resid_post)},
          {"ffn_norm_gain", number_or_null(entry.ffn_norm_gain)},
          {"neuron_count", entry.neuron_count},
          {"neuron_sum", finite_or_null(entry.neuron_sum)},
          {"ffn_difference", finite_or_null(entry.ffn_difference)},
          {"largest_neuron", finite_or_null(entry.largest_neuron)},
          {"neurons_for_90_percent", entry.neurons_for_90_percent},
          {"ffn_factor", finite_or_null(entry.ffn_factor)},
          {"modules", array_json(entry.modules,
                                 [](const ModulePart& part) {
                                   return OrderedJson{
                                       {"module", part.module},
                                       {"contribution", finite_or_null(part.contribution)}};
                                 })},
          {"neurons", array_json(entry.neurons, neuron_json)},
          {"opposing_neurons", array_json(entry.opposing, neuron_json)},
          {"heads", array_json(entry.heads,
                               [](const HeadPart& part) {
                                 return OrderedJson{
                                     {"head", part.head},
                                     {"contribution", finite_or_null(part.contribution)}};
                               })},
          {"head_sum", finite_or_null(entry.head_sum)},
          {"attn_difference", finite_or_null(entry.attn_difference)},
          {"attn_factor", finite_or_null(entry.attn_factor)}};
}

OrderedJson stage_attribution_json(const StageAttribution& stage) {
  return {{"stage", stages_json({stage.stage}).front()}, {"entry", entry_json(stage.entry)}};
}

OrderedJson super_weight_json(const std::optional<SuperWeight>& weight) {
  if (!weight) return nullptr;
  return {{"layer", weight->layer},
          {"module", weight->module},
          {"dim", weight->dim},
          {"neuron", weight->neuron},
          {"weight", finite_or_null(weight->weight)},
          {"input", float_or_null(weight->input)},
          {"output", float_or_null(weight->output)}};
}

OrderedJson look_json(const SuperWeightLook& look) {
  return {{"found", super_weight_json(look.found)},
          {"layers", array_json(look.layers, [](const DownSpike& spike) {
             return OrderedJson{{"layer", spike.layer},
                                {"module", spike.module},
                                {"input", float_or_null(spike.input)},
                                {"input_token", spike.input_token},
                                {"neuron", spike.neuron},
                                {"output", float_or_null(spike.output)},
                                {"output_token", spike.output_token},
                                {"dim", spike.dim},
                                {"opposes", spike.opposes}};
           })}};
}

}  // namespace

OrderedJson target_json(const ExplainTarget& target, const ScanResult& scan) {
  const TargetToken& shown = target.tokens[target.shown];
  return {{"layer", target.layer},
          {"dims", target.dims},
          {"found_by_scan", target.found},
          {"massive", target.massive},
          {"prompt", shown.prompt},
          {"token", shown.token},
          {"position", integer_or_null(target.position)},
          {"mean", numbers_json(target.mean)},
          {"threshold", finite_or_null(target.threshold)},
          {"me_layer", integer_or_null(scan.me_layer)},
          {"tokens", array_json(target.tokens, [](const TargetToken& token) {
             return OrderedJson{{"prompt", token.prompt},
                                {"token", token.token},
                                {"values", numbers_json(token.values)}};
           })}};
}

OrderedJson norm_json(const std::optional<NormResult>& norm) {
  if (!norm) return nullptr;
  return {{"ffn_norm", norm->ffn_norm ? analysis_json(*norm->ffn_norm) : OrderedJson(nullptr)},
          {"gains",
           {{"quantile_levels", {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}},
            {"attn_norm", array_json(norm->gains.attention, gains_json)},
            {"ffn_norm", array_json(norm->gains.ffn, gains_json)}}}};
}

OrderedJson ffn_json(const std::optional<FfnResult>& ffn) {
  if (!ffn) return nullptr;
  const SingularReading& singular = ffn->singular;
  return {{"entries", array_json(ffn->entries, entry_json)},
          {"stages", array_json(ffn->stages, stage_attribution_json)},
          {"super_weights",
           {{"threshold", ffn->super_weights.options.threshold},
            {"looks", array_json(ffn->super_weights.looks, look_json)}}},
          {"down_projection",
           {{"layer", singular.layer},
            {"module", singular.module},
            {"sigma1", finite_or_null(singular.sigma1)},
            {"sigma2", finite_or_null(singular.sigma2)},
            {"ratio", finite_or_null(singular.sigma1 / singular.sigma2)},
            {"frobenius", finite_or_null(singular.frobenius)},
            {"cosine", finite_or_null(singular.cosine)},
            {"others_cosine", finite_or_null(singular.others_cosine)},
            {"energy_at_dims", numbers_json(singular.energy_at_dims)}}}};
}

OrderedJson fall_json(const std::optional<FallResult>& fall) {
  if (!fall) return nullptr;
  return {{"stages", array_json(fall->stages, stage_attribution_json)},
          {"last_layer", fall->last_layer},
          {"threshold", finite_or_null(fall->threshold)},
          {"last_largest", finite_or_null(fall->last_largest)}};
}

}  // namespace onset
