// The words of explain's experiments.

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

// An effect of less than this factor is called small.
constexpr double notable_factor = 2.0;

// An effect of less than this factor is called nil.
constexpr double nil_factor = 1.1;
// Effects whose interaction is within this are called independent.
constexpr double independent = 0.05;

bool within_factor(double value, double factor) {
  return std::abs(std::log(value)) < std::log(factor);
}

std::string change_words(FfnChange change) {
  switch (change) {
    case FfnChange::normalised:
      return "normalising the product";
    case FfnChange::clamped:
      return "clamping the product";
    default:
      return "capping the output";
  }
}

std::string times(double factor) { return "x" + compact(factor); }

// What changing the norm and the FFN alone and together makes of M.
struct Effects {
  double gain = 1;
  double ffn = 1;
  double both = 1;
};

// One of them has no effect of its own, the other has.
std::string single_effect(const std::string& nil, double nil_value, const std::string& other,
                          double value, double both) {
  std::string text = str_cat(
      nil, " alone does nothing (", times(nil_value), "), ", other,
      value < 0.5 ? " does all (" : (value < 1 ? " takes some of it (" : " makes M larger ("),
      times(value), "), ");
  const double ratio = both / value;
  if (within_factor(ratio, notable_factor)) {
    const double deviation = 100 * std::abs(ratio - 1);
    return text + str_cat("and both together the same as that within ",
                          std::max<std::int64_t>(1, std::llround(std::ceil(deviation))), " %");
  }
  return text + str_cat("but together they make ", times(both));
}

std::string effects_words(const Effects& effects, FfnChange change) {
  const std::string gain = "flattening the gain";
  const std::string ffn = change_words(change);
  const bool gain_nil = within_factor(effects.gain, nil_factor);
  const bool ffn_nil = within_factor(effects.ffn, nil_factor);
  if (gain_nil && ffn_nil) {
    return str_cat("neither ", gain, " (", times(effects.gain), ") nor ", ffn, " (",
                   times(effects.ffn), ") does anything alone; together they make ",
                   times(effects.both));
  }
  if (gain_nil) return single_effect(gain, effects.gain, ffn, effects.ffn, effects.both);
  if (ffn_nil) return single_effect(ffn, effects.ffn, gain, effects.gain, effects.both);
  std::string alone = str_cat(gain, " alone makes ", times(effects.gain), ", ", ffn, " alone ",
                              times(effects.ffn), ", both ", times(effects.both));
  const double interaction = effects.both / (effects.gain * effects.ffn);
  const bool fall = effects.gain < 1 && effects.ffn < 1;
  if (std::abs(interaction - 1) <= independent) {
    return alone + (fall ? ": each takes its own factor away, whatever the other does"
                         : ": each has its own factor, whatever the other does");
  }
  if (!fall || within_factor(interaction, notable_factor)) return alone;
  return alone +
         (interaction > 1
              ? ": they overlap, and either change alone already does much of what both do"
              : ": together the changes take more away than the product of what each takes alone");
}

}  // namespace

std::string ffn_change_words(FfnChange change) {
  return change == FfnChange::as_is ? "as is" : std::string(ffn_change_name(change));
}

std::string interaction_words(const FactorialResult& factorial, FfnChange change) {
  const auto* plain = cell_of(factorial, 1.0, FfnChange::as_is);
  const auto* gain = cell_of(factorial, 0.0, FfnChange::as_is);
  const auto* ffn = cell_of(factorial, 1.0, change);
  const auto* both = cell_of(factorial, 0.0, change);
  if (plain == nullptr || gain == nullptr || ffn == nullptr || both == nullptr) return "";
  if (!(plain->at_layer > 0)) return "";
  return effects_words({.gain = gain->at_layer / plain->at_layer,
                        .ffn = ffn->at_layer / plain->at_layer,
                        .both = both->at_layer / plain->at_layer},
                       change);
}

std::vector<std::string> factorial_words(const Explanation& explanation) {
  const auto& factorial = explanation.result.factorial;
  if (!factorial) return {};
  const auto& found = *factorial;
  const auto& plain = *cell_of(found, 1.0, FfnChange::as_is);
  std::vector<std::string> words;
  std::string text =
      str_cat("As it is, M (the largest |x|) after the layer is ", compact(plain.at_layer), ".");
  if (const auto* flat = cell_of(found, 0.0, FfnChange::as_is)) {
    text += str_cat(" With the gain flattened to its mean it is ", compact(flat->at_layer), ";");
  }
  for (const auto change : {FfnChange::normalised, FfnChange::clamped, FfnChange::capped}) {
    const auto* cell = cell_of(found, 1.0, change);
    if (cell == nullptr) continue;
    text += str_cat(change == FfnChange::normalised ? " with the FFN " : ", ",
                    ffn_change_words(change), " ", compact(cell->at_layer));
    if (const auto* both = cell_of(found, 0.0, change)) {
      text += str_cat(" (both: ", compact(both->at_layer), ")");
    }
  }
  words.push_back(text + ".");
  words.emplace_back(
      "Flattened: every gain of the norm is set to their mean. Of the FFN, normalised: the product "
      "act(gate) * up of each token is divided by its RMS; clamped: scaled down to the RMS of the "
      "median token; capped: the output scaled down to twice the length of the median token's.");
  if (!(plain.at_layer > 0)) {
    words.emplace_back("M is 0 there: nothing can be compared with it.");
    return words;
  }
  if (const auto* flat = cell_of(found, 0.0, FfnChange::as_is)) {
    words.emplace_back(
        plain.at_layer < notable_factor * flat->at_layer
            ? str_cat("The ", massive_word(explanation),
                      "value does not need the shape of the gain: flattened, it stays.")
            : str_cat("The ", massive_word(explanation),
                      "value needs the shape of the gain: flattened, most of it is gone."));
  }
  for (const auto& interaction : found.interactions) {
    if (interaction.a != 0.0) continue;
    words.push_back(str_cat("Gain flattened and FFN ", ffn_change_words(interaction.ffn), ": ",
                            interaction_words(found, interaction.ffn), " (interaction ",
                            compact(interaction.value), ", a factor of ",
                            compact(std::exp(interaction.value)), ")."));
  }
  if (!found.norm_can_change) {
    words.emplace_back("Without a norm before the FFN only the FFN can be changed.");
  }
  words.emplace_back(
      "Flattening and normalising change every token of the layer, not this one alone: a "
      "worse perplexity is then no sign that the value was needed. The doses say that.");
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
              compact(found.threshold), " (the rule with the layer's median on the prompts), ",
              found.massive_at_dims == found.massive ? "all" : grouped(found.massive_at_dims),
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

}  // namespace onset::app
