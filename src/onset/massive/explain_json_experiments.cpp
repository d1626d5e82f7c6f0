// The JSON of explain's experiments: factorial, vocabulary, doses.

#include <utility>

#include "onset/massive/explain_json.h"
#include "onset/massive/explain_json_parts.h"

namespace onset {
namespace {

OrderedJson text_json(const TextMeasure& text) {
  return {{"perplexity", finite_or_null(text.perplexity)},
          {"scored_tokens", text.scored_tokens},
          {"sink_rate", finite_or_null(text.sinks.sink_rate)},
          {"sink_samples", text.sinks.samples},
          {"layer_sink_rate", numbers_json(text.sinks.layer_rate)},
          {"layer_alpha", numbers_json(text.sinks.layer_alpha)}};
}

OrderedJson cell_json(const FactorialCell& cell, std::int64_t layer) {
  return {{"norm_a", cell.a},
          {"ffn", ffn_change_name(cell.ffn)},
          {"max_abs", finite_or_null(cell.at_layer)},
          {"token_max_abs", finite_or_null(cell.of_token)},
          {"later_max_abs", finite_or_null(cell.later)},
          {"layer_max_abs", numbers_json(cell.by_layer)},
          {"sink_rate_behind", cell.text ? finite_or_null(sinks_behind(cell.text->sinks, layer))
                                         : OrderedJson(nullptr)},
          {"text", cell.text ? text_json(*cell.text) : OrderedJson(nullptr)}};
}

OrderedJson vocabulary_token_json(const VocabularyToken& token) {
  return {{"id", token.id}, {"max_abs", float_or_null(token.largest)}, {"dim", token.dim}};
}

OrderedJson key_json(const KeyReading& key) {
  return {{"key_norm", finite_or_null(key.key_norm)},
          {"others_key_norm", finite_or_null(key.others_key_norm)},
          {"value_norm", finite_or_null(key.value_norm)},
          {"others_value_norm", finite_or_null(key.others_value_norm)},
          {"query_cosine", finite_or_null(key.query_cosine)},
          {"others_query_cosine", finite_or_null(key.others_query_cosine)}};
}

OrderedJson condition_json(const DoseCondition& condition, std::int64_t layer) {
  return {{"name", condition.name},
          {"dose", number_or_null(condition.dose)},
          {"sink_rate_behind", finite_or_null(sinks_behind(condition.text.sinks, layer))},
          {"text", text_json(condition.text)},
          {"state_norm", finite_or_null(condition.state_norm)},
          {"others_state_norm", finite_or_null(condition.others_state_norm)},
          {"keys", array_json(condition.keys, key_json)}};
}

}  // namespace

OrderedJson factorial_json(const std::optional<FactorialResult>& factorial) {
  if (!factorial) return nullptr;
  return {{"layer", factorial->layer},
          {"norm_can_change", factorial->norm_can_change},
          {"cap", factorial->cap},
          {"cells", array_json(factorial->cells,
                               [&](const FactorialCell& cell) {
                                 return cell_json(cell, factorial->layer);
                               })},
          {"interactions", array_json(factorial->interactions, [](const Interaction& interaction) {
             return OrderedJson{{"norm_a", interaction.a},
                                {"ffn", ffn_change_name(interaction.ffn)},
                                {"value", finite_or_null(interaction.value)}};
           })}};
}

OrderedJson vocabulary_json(const std::optional<VocabularyResult>& vocabulary) {
  if (!vocabulary) return nullptr;
  const auto tokens = static_cast<double>(vocabulary->tokens);
  return {{"layer", vocabulary->layer},
          {"threshold", finite_or_null(vocabulary->threshold)},
          {"tokens", vocabulary->tokens},
          {"massive", vocabulary->massive},
          {"massive_share", finite_or_null(static_cast<double>(vocabulary->massive) / tokens)},
          {"massive_at_dims", vocabulary->massive_at_dims},
          {"quantile_levels", numbers_json(vocabulary->levels)},
          {"quantiles", numbers_json(vocabulary->quantiles)},
          {"log10_edges", numbers_json(vocabulary->edges)},
          {"counts", vocabulary->counts},
          {"small", array_json(vocabulary->small, vocabulary_token_json)},
          {"largest", array_json(vocabulary->largest, vocabulary_token_json)}};
}

OrderedJson dose_json(const std::optional<DoseResult>& dose) {
  if (!dose) return nullptr;
  OrderedJson removed = OrderedJson::array({"ffn_out"});
  if (dose->attention_removed) removed.push_back("attn_out");
  return {{"layer", dose->layer},
          {"dims", dose->dims},
          {"position", integer_or_null(dose->position)},
          {"key", dose->key},
          {"mean", numbers_json(dose->mean)},
          {"control_dim", dose->control_dim},
          {"control_position", dose->control_position},
          {"removed_writes", std::move(removed)},
          {"conditions", array_json(dose->conditions, [&](const DoseCondition& condition) {
             return condition_json(condition, dose->layer);
           })}};
}

}  // namespace onset
