// The tables of explain's experiments.

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "text.h"

namespace onset::app {
namespace {

// The first layer after the edited one, the two whose sinks change most with the dose, the last.
std::vector<std::size_t> layers_shown(const DoseResult& dose) {
  auto order = layers_by_change(dose);
  if (order.empty()) return {};
  const auto [first, last] = std::minmax_element(order.begin(), order.end());
  std::vector<std::size_t> shown{*first, *last};
  for (const auto layer : order) {
    if (shown.size() == 4) break;
    if (layer != shown[0] && layer != shown[1]) shown.push_back(layer);
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

}  // namespace

std::string factorial_rows(const FactorialResult& factorial) {
  std::string text =
      "norm's gain   FFN             M  token's  later M  perplexity   sinks      later\n";
  for (const auto& cell : factorial.cells) {
    const std::string norm =
        cell.a == 1.0 ? "as is" : (cell.a == 0.0 ? "flat" : str_cat("flat, a = ", cell.a));
    const auto& measured = cell.text;
    text += pad_right(norm, 14) + pad_right(ffn_change_words(cell.ffn), 10) +
            pad_left(compact(cell.at_layer), 7) + pad_left(compact(cell.of_token), 9) +
            pad_left(std::isnan(cell.later) ? "-" : compact(cell.later), 9) +
            pad_left(measured ? perplexity_text(measured->perplexity) : "-", 12) +
            pad_left(measured ? percent(measured->sinks.sink_rate) : "-", 8) +
            pad_left(measured ? percent(sinks_behind(measured->sinks, factorial.layer)) : "-", 11) +
            "\n";
  }
  return text +
         wrap(str_cat("flat: every gain is the mean of all; a = 0.5: half way there. "
                      "normalised: product / its rms; clamped: product cut down to the "
                      "median token's rms; capped: FFN output cut down to ",
                      shortest(factorial.cap),
                      " times the median token's length. token's: M of the explained "
                      "token; later M: after any later layer; later: sinks in the layers "
                      "after this one, as in part 6."),
              80, 0) +
         "\n";
}

std::string vocabulary_rows(const VocabularyResult& vocabulary) {
  std::string levels = "quantile";
  std::string values = "max |x| ";
  for (std::size_t i = 0; i < vocabulary.levels.size(); ++i) {
    levels += pad_left(shortest(vocabulary.levels[i]), 8);
    values += column(compact(vocabulary.quantiles[i]), 8);
  }
  return levels + "\n" + values + "\n";
}

std::string dose_rows(const DoseResult& dose) {
  if (dose.conditions.empty()) return {};
  const auto shown = layers_shown(dose);
  std::string text = "entries       perplexity    sinks   later  at layer";
  for (const auto layer : shown) text += pad_left(str_cat(layer), 8);
  text += "\n";
  for (const auto& condition : dose.conditions) {
    const auto& sinks = condition.text.sinks;
    text += pad_right(condition_name(dose, condition), 14) +
            pad_left(perplexity_text(condition.text.perplexity), 10) +
            pad_left(percent(sinks.sink_rate), 9) +
            pad_left(percent(sinks_behind(sinks, dose.layer)), 8) + std::string(9, ' ');
    for (const auto layer : shown) text += column(percent(sinks.layer_rate[layer]), 8);
    text += "\n";
  }
  if (shown.empty()) return text;
  const auto layer = layers_by_change(dose).front();
  text += str_cat("keys of layer ", layer, "      |k|  others  |v|  others   cos(q, k)  others\n");
  for (const auto& condition : dose.conditions) {
    const auto& key = condition.keys[layer];
    text += pad_right(condition_name(dose, condition), 15) + pad_left(compact(key.key_norm), 10) +
            pad_left(compact(key.others_key_norm), 8) + pad_left(compact(key.value_norm), 8) +
            pad_left(compact(key.others_value_norm), 8) + pad_left(compact(key.query_cosine), 12) +
            pad_left(compact(key.others_query_cosine), 9) + "\n";
  }
  return text;
}

}  // namespace onset::app
