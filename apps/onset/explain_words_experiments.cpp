// The words of explain's experiments.

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "text.h"

namespace onset::app {
namespace {

// An effect of less than this factor is called small.
constexpr double notable_factor = 2.0;

const FactorialCell* cell_of(const FactorialResult& result, double a, FfnChange ffn) {
  for (const auto& cell : result.cells) {
    if (cell.a == a && cell.ffn == ffn) return &cell;
  }
  return nullptr;
}

std::string interaction_words(double value) {
  if (std::abs(value) < std::log(notable_factor)) {
    return "each takes its own factor away, whatever the other does";
  }
  return value > 0 ? "together they make more than the product of what each makes alone"
                   : "they overlap: either of the two alone makes most of what both make";
}

// Means of a rate over the layers behind the edited one.
double behind(const std::vector<double>& rates, std::int64_t layer) {
  double sum = 0;
  double count = 0;
  for (auto l = static_cast<std::size_t>(layer) + 1; l < rates.size(); ++l) {
    if (std::isnan(rates[l])) continue;
    sum += rates[l];
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

const DoseCondition* condition_of(const DoseResult& dose, const std::string& name,
                                  std::optional<double> value = std::nullopt) {
  for (const auto& condition : dose.conditions) {
    if (condition.name == name && condition.dose == value) return &condition;
  }
  return nullptr;
}

// How the sinks behind the layer respond, beside the controls.
std::string verdict_words(const DoseResult& dose) {
  const auto rate = [&](const DoseCondition* condition) {
    return condition == nullptr ? std::nan("")
                                : behind(condition->text.sinks.layer_rate, dose.layer);
  };
  const double full = rate(condition_of(dose, "dose", 1.0));
  const double none = rate(condition_of(dose, "dose", 0.0));
  const double control = std::max(std::abs(full - rate(condition_of(dose, "control_dim"))),
                                  std::abs(full - rate(condition_of(dose, "control_token"))));
  if (std::isnan(full - none)) return "The sinks behind the layer could not be measured.";
  const std::string change = str_cat(
      "Without the massive entries the sink rate behind the layer "
      "goes from ",
      percent(full), " to ", percent(none), ", with the controls by at most ", percent(control),
      ": ");
  if (full - none < std::max(0.05, 2 * control)) {
    return change + "the sinks hardly respond to them.";
  }
  return change + (none > 0.5 * full
                       ? "they are one cause of the sinks, and most sinks remain without them."
                       : "they are what most of these sinks rest on.");
}

std::string response_words(const DoseCondition& condition, std::int64_t layer) {
  return str_cat("sink rate behind the layer ",
                 percent(behind(condition.text.sinks.layer_rate, layer)), ", perplexity ",
                 compact(condition.text.perplexity));
}

}  // namespace

std::string ffn_change_words(FfnChange change) {
  switch (change) {
    case FfnChange::as_is:
      return "as is";
    case FfnChange::normalised:
      return "product normalised";
    case FfnChange::clamped:
      return "product clamped";
    case FfnChange::capped:
      break;
  }
  return "output capped";
}

std::vector<std::string> factorial_words(const Explanation& explanation) {
  const auto& factorial = explanation.result.factorial;
  if (!factorial) return {};
  const auto& found = *factorial;
  const auto& plain = *cell_of(found, 1.0, FfnChange::as_is);
  std::vector<std::string> words;
  std::string text =
      str_cat("As it is, the largest |x| after the layer is ", compact(plain.at_layer), ".");
  if (const auto* flat = cell_of(found, 0.0, FfnChange::as_is)) {
    text += str_cat(" With the gain flattened to its mean it is ", compact(flat->at_layer), ";");
  }
  for (const auto change : {FfnChange::normalised, FfnChange::clamped, FfnChange::capped}) {
    const auto* cell = cell_of(found, 1.0, change);
    if (cell == nullptr) continue;
    text += str_cat(change == FfnChange::normalised ? " with the " : ", ", ffn_change_words(change),
                    " ", compact(cell->at_layer));
    if (const auto* both = cell_of(found, 0.0, change)) {
      text += str_cat(" (both: ", compact(both->at_layer), ")");
    }
  }
  words.push_back(text + ".");
  if (const auto* flat = cell_of(found, 0.0, FfnChange::as_is)) {
    words.emplace_back(
        plain.at_layer < notable_factor * flat->at_layer
            ? "The massive value does not need the shape of the gain: flattened, it stays."
            : "The massive value needs the shape of the gain: flattened, most of it is gone.");
  }
  for (const auto& interaction : found.interactions) {
    if (interaction.a != 0.0) continue;
    words.push_back(str_cat("Interaction of the flattened gain with the FFN's ",
                            ffn_change_words(interaction.ffn), ": ", compact(interaction.value),
                            ", a factor of ", compact(std::exp(interaction.value)), "; ",
                            interaction_words(interaction.value), "."));
  }
  if (!found.norm_can_change) {
    words.emplace_back("Without a norm before the FFN only the FFN can be changed.");
  }
  words.emplace_back(
      "Flattening and normalising change every token of the layer, not the massive one alone: a "
      "worse perplexity is then no sign that the massive value was needed. The doses say that.");
  return words;
}

std::vector<std::string> vocabulary_words(const Explanation& explanation, const TextStyle& style) {
  const auto& vocabulary = explanation.result.vocabulary;
  if (!vocabulary) return {};
  const auto& found = *vocabulary;
  const double share = static_cast<double>(found.massive) / static_cast<double>(found.tokens);
  std::string text =
      str_cat("Alone at position 0, ", grouped(found.massive), " of ", grouped(found.tokens),
              " vocabulary entries (", compact(100 * share), " %) have an entry above ",
              compact(found.threshold), " after the layer, ", grouped(found.massive_at_dims),
              " of them with the largest in the dims explained; the median of the "
              "largest |x| is ",
              compact(found.quantiles[found.quantiles.size() / 2]), ".");
  if (!found.small.empty()) {
    text += " The smallest: ";
    for (std::size_t i = 0; i < std::min<std::size_t>(6, found.small.size()); ++i) {
      const auto& token = found.small[i];
      const auto piece = explanation.pieces.find(token.id);
      text += i == 0 ? "" : ", ";
      text += piece == explanation.pieces.end()
                  ? str_cat("id ", token.id)
                  : "\"" + fit(printable(piece->second, style.utf8), 16, style.utf8) + "\"";
      text += str_cat(" (", compact(token.largest), ")");
    }
    text += ".";
  }
  const auto* judged =
      share > 0.95   ? "So at the first place it is the place that decides, and hardly the token"
      : share < 0.05 ? "So the first place alone does not make a token massive"
                     : "So place and token both matter";
  return {text, str_cat(judged,
                        ". This says what a token does there and alone, not what it does elsewhere "
                        "or behind a BOS.")};
}

std::vector<std::string> dose_words(const Explanation& explanation) {
  const auto& dose = explanation.result.dose;
  if (!dose) return {};
  const auto& found = *dose;
  std::vector<std::string> words;
  std::string text = "With the massive entries ";
  bool first = true;
  for (const auto& condition : found.conditions) {
    if (!condition.dose) continue;
    text += str_cat(first ? "" : "; ",
                    *condition.dose == 1.0 ? std::string("as they are")
                                           : str_cat("times ", compact(*condition.dose)),
                    ": ", response_words(condition, found.layer));
    first = false;
  }
  words.push_back(text + ".");
  if (const auto* mean = condition_of(found, "mean")) {
    words.push_back(str_cat("Set to their mean over the prompts (", compact(found.mean.front()),
                            "): ", response_words(*mean, found.layer),
                            ". Where this changes little, the entries' exact values carry "
                            "next to no information: the model needs them as a constant."));
  }
  const auto* dim = condition_of(found, "control_dim");
  const auto* token = condition_of(found, "control_token");
  if (dim != nullptr && token != nullptr) {
    words.push_back(str_cat("Controls: dim ", found.control_dim,
                            " of the same token set to 0: ", response_words(*dim, found.layer),
                            "; the same dims of token ", found.control_position,
                            " set to 0: ", response_words(*token, found.layer), "."));
  }
  words.push_back(verdict_words(found));
  words.emplace_back(
      "This holds for the text, the heads' threshold and the model as trained: another training "
      "may make sinks without such entries, and what the perplexity is lost for is not shown.");
  return words;
}

}  // namespace onset::app
