// The words of explain's doses.

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "text.h"

namespace onset::app {
namespace {

// A sink rate that changes by less than this is called unchanged.
constexpr double notable_change = 0.05;
// From this on a layer responds.
constexpr double response = 0.1;
// Below this a layer has no sinks.
constexpr double no_sinks = 0.005;

double rate_of(const DoseResult& dose, const DoseCondition* condition) {
  return condition == nullptr ? std::nan("") : sinks_behind(condition->text.sinks, dose.layer);
}

std::string points(double share) { return fixed(100 * share, 1); }

std::string removed_words(const DoseResult& dose) {
  return dose.attention_removed ? "ffn_out and attn_out set to 0 at the token"
                                : "ffn_out set to 0 at the token";
}

std::string response_words(const DoseResult& dose, const DoseCondition& condition) {
  return str_cat("sink rate of later layers ", percent(rate_of(dose, &condition)), ", perplexity ",
                 perplexity_text(condition.text.perplexity));
}

std::string doses_words(const DoseResult& dose, const std::string& massive) {
  std::string text = "With the " + massive + "entries ";
  bool first = true;
  for (const auto& condition : dose.conditions) {
    if (!condition.dose) continue;
    text += str_cat(first ? "" : "; ",
                    *condition.dose == 1.0 ? std::string("as they are")
                                           : str_cat("times ", shortest(*condition.dose)),
                    ": ", response_words(dose, condition));
    first = false;
  }
  return text + ".";
}

// Which layers respond, and which lose all sinks at which dose.
std::string layers_words(const DoseResult& dose) {
  const auto* full = condition_of(dose, "dose", 1.0);
  const auto* none = condition_of(dose, "dose", 0.0);
  if (full == nullptr || none == nullptr) return "";
  const auto& before = full->text.sinks.layer_rate;
  const auto lost = [&](const DoseCondition& condition, std::size_t layer) {
    return before[layer] > response && condition.text.sinks.layer_rate[layer] < no_sinks;
  };
  std::vector<std::int64_t> respond;
  std::vector<std::int64_t> seen;
  std::string gone;
  for (const auto& condition : dose.conditions) {
    if (!condition.dose) continue;
    std::vector<std::int64_t> here;
    for (auto l = static_cast<std::size_t>(dose.layer) + 1; l < before.size(); ++l) {
      const auto layer = static_cast<std::int64_t>(l);
      if (&condition == none && before[l] - condition.text.sinks.layer_rate[l] >= response) {
        respond.push_back(layer);
      }
      if (!lost(condition, l) || std::find(seen.begin(), seen.end(), layer) != seen.end()) continue;
      here.push_back(layer);
      seen.push_back(layer);
    }
    if (here.empty()) continue;
    gone +=
        str_cat(gone.empty() ? "" : "; ", here.size() == 1 ? "layer " : "layers ", ranges(here),
                " at dose ", shortest(*condition.dose), *condition.dose > 0 ? " and below" : "");
  }
  if (respond.empty()) return "No layer loses 10 percentage points of its sink rate or more.";
  std::string text = str_cat(respond.size() == 1 ? "Layer " : "Layers ", ranges(respond),
                             respond.size() == 1 ? " loses" : " lose",
                             " 10 percentage points of the sink rate or more at dose 0");
  return text +
         (gone.empty() ? "; none loses all sinks." : "; all sinks are lost in " + gone + ".");
}

// What the entries make of the token's key and value, in the layer whose sinks change most.
std::string key_words(const DoseResult& dose, const std::string& massive) {
  const auto* full = condition_of(dose, "dose", 1.0);
  const auto* none = condition_of(dose, "dose", 0.0);
  const auto order = layers_by_change(dose);
  if (full == nullptr || none == nullptr || order.empty()) return "";
  const auto& with = full->keys[order.front()];
  const auto& without = none->keys[order.front()];
  std::string text = str_cat(
      "In layer ", order.front(), ", whose sinks change most, the token's key is ",
      compact(with.key_norm), " long (others ", compact(with.others_key_norm), "), its value ",
      compact(with.value_norm), " (others ", compact(with.others_value_norm),
      "), and later queries have a cosine of ", compact(with.query_cosine),
      " with the key (others ", compact(with.others_query_cosine),
      "); with the entries zeroed they are ", compact(without.key_norm), ", ",
      compact(without.value_norm), " and ", compact(without.query_cosine));
  const auto small = [](double own, double others, double changed) {
    return own < 0.5 * others && changed > 1.5 * own;
  };
  const bool key = small(with.key_norm, with.others_key_norm, without.key_norm);
  const bool value = small(with.value_norm, with.others_value_norm, without.value_norm);
  if (!key && !value) return text + ".";
  return text + str_cat(": the ", massive,
                        dose.dims.size() == 1 ? "entry is what makes" : "entries are what make",
                        " the token's ", key && value ? "key and value" : (key ? "key" : "value"),
                        " small.");
}

// What the state is without the entries.
std::string state_words(const DoseResult& dose) {
  const auto* none = condition_of(dose, "dose", 0.0);
  if (none == nullptr) return "";
  const double ratio = none->state_norm / none->others_state_norm;
  std::string text =
      str_cat("With the entries zeroed the token's state after the layer is still ",
              about(none->state_norm), " long, ", about(ratio),
              " times the median of the other tokens (", about(none->others_state_norm), ")");
  return text + (ratio > 2 ? ": zeroing them does not make it an ordinary token." : ".");
}

}  // namespace

std::string dose_verdict(const DoseResult& dose) {
  const auto rate = [&](const char* name, std::optional<double> at = std::nullopt) {
    return percent(rate_of(dose, at ? condition_of(dose, name, *at) : condition_of(dose, name)));
  };
  if (std::isnan(rate_of(dose, condition_of(dose, "dose", 1.0))) ||
      std::isnan(rate_of(dose, condition_of(dose, "dose", 0.0)))) {
    return "The sinks of later layers could not be measured.";
  }
  return str_cat("The sink rate of later layers is ", rate("dose", 1.0),
                 "; with the entries zeroed ", rate("dose", 0.0),
                 " remain, with all that the block writes to the token removed ",
                 rate("block_write"), "; ", dose_conclusion(dose));
}

std::string dose_conclusion(const DoseResult& dose) {
  const auto rate = [&](const DoseCondition* condition) { return rate_of(dose, condition); };
  const double full = rate(condition_of(dose, "dose", 1.0));
  const double zeroed = rate(condition_of(dose, "dose", 0.0));
  const double removed = rate(condition_of(dose, "block_write"));
  const double control = std::max(std::abs(full - rate(condition_of(dose, "control_dim"))),
                                  std::abs(full - rate(condition_of(dose, "control_token"))));
  if (std::isnan(full - zeroed)) return "the sinks of later layers could not be measured.";
  const std::string change = str_cat("the controls change the sink rate by at most ",
                                     points(control), " percentage points: ");
  if (std::max({full, zeroed, removed}) < notable_change) {
    return change + "hardly a head is a sink there to begin with, so nothing can respond.";
  }
  const double notable = std::max(notable_change, 2 * control);
  if (full - std::min(zeroed, removed) < notable) {
    return change + "the sinks hardly respond to what the block writes there.";
  }
  if (removed > 0.5 * full) {
    return change +
           "what the block writes there is one cause of the sinks, and most of them "
           "remain without it.";
  }
  if (zeroed > 0.5 * full) {
    return change +
           "the sinks rest on what the block writes to the token as a whole; zeroing its "
           "largest entries leaves enough of it for most of them.";
  }
  return change + "most of these sinks rest on the entries.";
}

std::string perplexity_apart(const DoseResult& dose) {
  const auto* full = condition_of(dose, "dose", 1.0);
  const auto* none = condition_of(dose, "dose", 0.0);
  const auto* removed = condition_of(dose, "block_write");
  if (full == nullptr || none == nullptr || removed == nullptr) return "";
  const double more = rate_of(dose, none) - rate_of(dose, removed);
  const bool apart = more > notable_change && none->text.perplexity > 2 * full->text.perplexity &&
                     none->text.perplexity > 2 * removed->text.perplexity;
  if (!apart) return "";
  return str_cat(
      "Sinks and perplexity part here: with the whole write removed fewer sinks are "
      "left (",
      percent(rate_of(dose, removed)), ") and the perplexity is ",
      perplexity_text(removed->text.perplexity), ", with the entries zeroed more (",
      percent(rate_of(dose, none)), ") and it is ", perplexity_text(none->text.perplexity),
      ". So lost sinks are not what the perplexity is lost for there.");
}

std::vector<std::string> dose_words(const Explanation& explanation) {
  const auto& dose = explanation.result.dose;
  if (!dose) return {};
  const auto& found = *dose;
  const auto massive = massive_word(explanation);
  std::vector<std::string> words{doses_words(found, massive)};
  const auto add = [&](std::string text) {
    if (!text.empty()) words.push_back(std::move(text));
  };
  add(layers_words(found));
  add(key_words(found, massive));
  if (const auto* mean = condition_of(found, "mean")) {
    std::string means;
    for (std::size_t i = 0; i < std::min(found.mean.size(), found.dims.size()); ++i) {
      means += str_cat(i == 0 ? "" : ", ", compact(found.mean[i]), " in dim ", found.dims[i]);
    }
    add(str_cat("Set to their mean over the prompts (", means, "): ", response_words(found, *mean),
                ". Where this changes little, the entries' exact values carry next to no "
                "information; where zeroing them changes much, the model needs them as a "
                "constant."));
  }
  add(state_words(found));
  if (const auto* removed = condition_of(found, "block_write")) {
    add(str_cat("With the block's whole write removed (", removed_words(found), ", which leaves ",
                about(removed->state_norm), "): ", response_words(found, *removed), "."));
  }
  const auto* dim = condition_of(found, "control_dim");
  const auto* token = condition_of(found, "control_token");
  if (dim != nullptr && token != nullptr) {
    add(str_cat("Controls: dim ", found.control_dim, " of the same token set to 0: ",
                response_words(found, *dim), "; the same dims of token ", found.control_position,
                " set to 0: ", response_words(found, *token), "."));
  }
  add(dose_verdict(found));
  add(perplexity_apart(found));
  if (explanation.text) {
    const auto too_short = short_text_words(*explanation.text);
    if (!too_short.empty()) add("Note: " + too_short + ".");
  }
  add("This holds for the text, the heads' threshold and the model as trained: another training "
      "may "
      "make sinks without such entries, and what the perplexity is lost for is not shown.");
  return words;
}

}  // namespace onset::app
