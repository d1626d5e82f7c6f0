// What an explanation found, in words: the exact parts. The experiments' are in
// explain_words_experiments.cpp.

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "text.h"

namespace onset::app {
namespace {

std::string dims_words(const std::vector<std::int64_t>& dims) {
  std::string text = dims.size() == 1 ? "dim " : "dims ";
  for (std::size_t i = 0; i < dims.size(); ++i) text += str_cat(i == 0 ? "" : ", ", dims[i]);
  return text;
}

std::vector<std::string> target_words(const Explanation& explanation, const TextStyle& style) {
  const auto& target = explanation.result.target;
  const auto& shown = target.tokens[target.shown];
  std::string text =
      str_cat("Explained is ", layer_words(explanation, target.layer), ", ",
              token_words(explanation, shown, style), ", ", dims_words(target.dims),
              ", where the state after the layer is ", compact(shown.values.front()), ".");
  if (target.found) {
    text += str_cat(" Scan found it in ", target.tokens.size(), " of ",
                    counted(std::ssize(explanation.scan.prompts), "prompt"), ".");
  } else {
    text += " It was named on the command line.";
    if (!target.massive) {
      text +=
          " By scan's rule there is no massive entry there, so read what follows as a "
          "description of an ordinary state.";
    }
  }
  return {text};
}

std::vector<std::string> norm_words(const Explanation& explanation) {
  const auto& norm = explanation.result.norm;
  if (!norm) return {};
  if (!norm->ffn_norm) {
    return {"This family has no norm before the FFN: there is no gain that could amplify."};
  }
  const auto& found = *norm->ffn_norm;
  const auto& token = found.token;
  std::vector<std::string> words;
  std::string text = str_cat("The gain w of the norm before the FFN makes the massive token ",
                             compact(token.amplification), " times as long as x_hat");
  if (found.others) {
    text += str_cat("; the median of the ", found.other_count, " other tokens is ",
                    compact(found.others->amplification), ", so it is amplified ",
                    compact(found.relative_amplification), " times as much");
  }
  words.push_back(text + ".");

  const auto hidden = std::ssize(found.gain);
  for (const auto& dim : found.massive_dims) {
    const bool hidden_from_ffn = dim.energy_after < 0.01 * dim.energy_before;
    words.push_back(str_cat("In dim ", dim.dim, " the norm reads x = ", compact(dim.x), ", ",
                            percent(dim.energy_before), " of the token's energy; its gain is ",
                            compact(dim.gain), " (number ", dim.gain_rank + 1, " of ", hidden,
                            " by size), which leaves ", percent(dim.energy_after), ". ",
                            hidden_from_ffn ? "So the FFN does not read what stands in this dim."
                                            : "So the FFN reads this dim too."));
  }
  std::string read = str_cat("What the FFN reads instead is spread over about ",
                             compact(token.after.participation), " dims (",
                             compact(token.before.participation), " before the gain");
  if (found.others) read += str_cat("; others ", compact(found.others->after.participation));
  read += "), most of it in ";
  for (std::size_t i = 0; i < std::min<std::size_t>(4, found.top_dims.size()); ++i) {
    const auto& dim = found.top_dims[i];
    read += str_cat(i == 0 ? "" : ", ", dim.dim, " (", percent(dim.energy_after), ", gain ",
                    compact(dim.gain), ")");
  }
  read +=
      str_cat("; the 16 largest gains hold ", percent(token.after.gain_top16), " of the energy");
  if (found.others) read += str_cat(", ", percent(found.others->after.gain_top16), " for others");
  words.push_back(read + ".");
  const bool concentrates = token.after.participation < token.before.participation;
  words.push_back(str_cat("So the gain ", concentrates ? "concentrates" : "spreads",
                          " the token's energy: its largest 16 dims hold ",
                          percent(token.before.top16), " before and ", percent(token.after.top16),
                          " after it; |w| and x_hat^2 have a rank correlation of ",
                          compact(token.rank_correlation), "."));
  words.emplace_back(
      "Amplification and concentration describe the input of the FFN. They do not say that it "
      "responds to them: see the neurons and the factorial experiment.");
  return words;
}

std::string neuron_words(const NeuronPart& neuron) {
  const auto module = neuron.module == "ffn" ? std::string() : " of " + neuron.module;
  return str_cat("neuron ", neuron.neuron, module, " ", compact(neuron.contribution), " (gate ",
                 compact(neuron.gate), ", up ", compact(neuron.up), ", weight ",
                 compact(neuron.weight), ")");
}

std::string reads_words(const NeuronPart& neuron, std::int64_t dim) {
  const bool many = std::abs(neuron.gate_terms.front().contribution) < 0.2 * std::abs(neuron.gate);
  std::string text = str_cat(
      "The gate of neuron ", neuron.neuron, " (", compact(neuron.gate), ") ",
      many ? "is the sum of many small terms, the largest from dims " : "is driven by dims ");
  for (std::size_t i = 0; i < std::min<std::size_t>(3, neuron.gate_terms.size()); ++i) {
    const auto& term = neuron.gate_terms[i];
    text += str_cat(i == 0 ? "" : ", ", term.dim, " (", compact(term.contribution), ")");
  }
  return text + str_cat("; dim ", dim, " itself gives ", compact(neuron.gate_from_dim), ".");
}

std::string entry_words(const EntryAttribution& entry) {
  std::string text = str_cat(
      "In dim ", entry.dim, " the FFN adds ", compact(entry.ffn_out), " and attention ",
      compact(entry.attn_out), " to ", compact(entry.resid_pre), ". ", entry.neurons_for_90_percent,
      " of ", entry.neuron_count, " neurons carry 90 % of what the neurons write there: ");
  for (std::size_t i = 0; i < std::min<std::size_t>(2, entry.neurons.size()); ++i) {
    text += (i == 0 ? "" : ", ") + neuron_words(entry.neurons[i]);
  }
  return text + str_cat(". The sum over all neurons differs from the captured value by ",
                        compact(entry.ffn_difference), ".");
}

// In a mixture: who of the experts writes it.
std::string module_words(const EntryAttribution& entry) {
  const auto writer = std::max_element(entry.modules.begin(), entry.modules.end(),
                                       [](const ModulePart& a, const ModulePart& b) {
                                         return std::abs(a.contribution) < std::abs(b.contribution);
                                       });
  return str_cat("Of the ", entry.modules.size(), " modules that the token went through, ",
                 writer->module, " writes most: ", compact(writer->contribution), " of ",
                 compact(entry.neuron_sum), ".");
}

std::string super_weight_words(const SuperWeightResult& found) {
  std::string text;
  for (std::size_t i = 0; i < found.looks.size(); ++i) {
    const auto& look = found.looks[i];
    if (!look.found) {
      text += text.empty() ? "No layer's down projection has both an input and an output above " +
                                 compact(found.options.threshold) + ": no super weight."
                           : " Without " + std::string(i > 1 ? "these" : "it") +
                                 " nothing stands out any more.";
      continue;
    }
    text += str_cat(i == 0 ? "The super weight is"
                           : (i == 1 ? " Without it the next is" : " Without these the next is"),
                    " layer ", look.found->layer, " W_down[", look.found->dim, ", ",
                    look.found->neuron, "] = ", compact(look.found->weight), " (input ",
                    compact(look.found->input), ", output ", compact(look.found->output), ").");
  }
  return text;
}

std::vector<std::string> ffn_words(const Explanation& explanation) {
  const auto& ffn = explanation.result.ffn;
  if (!ffn) return {};
  std::vector<std::string> words;
  words.reserve(ffn->entries.size());
  for (const auto& entry : ffn->entries) words.push_back(entry_words(entry));
  if (ffn->entries.front().modules.size() > 1) {
    words.push_back(module_words(ffn->entries.front()));
  }
  const auto& first = ffn->entries.front();
  if (!first.neurons.empty() && !first.neurons.front().gate_terms.empty()) {
    words.push_back(reads_words(first.neurons.front(), first.dim));
  }
  words.push_back(super_weight_words(ffn->super_weights));
  const auto& singular = ffn->singular;
  words.push_back(str_cat("The largest singular value of that down projection is ",
                          compact(singular.sigma1 / singular.sigma2),
                          " times the second; the token's output lies along the first direction "
                          "with |cos| = ",
                          compact(singular.cosine), " (others ", compact(singular.others_cosine),
                          "), and ", percent(singular.energy_at_dims.front()),
                          " of that direction is dim ", first.dim, "."));
  words.emplace_back(
      "The sums are exact, but a neuron that writes much is not by that the cause: what it would "
      "have written on another input is for the experiments to say.");
  return words;
}

std::string stage_words(const StageAttribution& stage) {
  const auto& entry = stage.entry;
  const bool by_ffn = std::abs(entry.ffn_out) >= std::abs(entry.attn_out);
  std::string text =
      str_cat("Layer ", entry.layer, " takes dim ", entry.dim, " from ", compact(entry.resid_pre),
              " to ", compact(entry.resid_post), ": its FFN adds ", compact(entry.ffn_out),
              ", its attention ", compact(entry.attn_out), ". ");
  if (by_ffn && !entry.opposing.empty()) {
    text += "Against its sign write ";
    for (std::size_t i = 0; i < std::min<std::size_t>(3, entry.opposing.size()); ++i) {
      text += (i == 0 ? "" : ", ") + neuron_words(entry.opposing[i]);
    }
    text += ". ";
    const auto& neuron = entry.neurons.front();
    if (entry.ffn_norm_gain && !neuron.gate_terms.empty()) {
      text += str_cat("The FFN's norm has gain ", compact(*entry.ffn_norm_gain),
                      " in that dim, and "
                      "it gives ",
                      compact(neuron.gate_from_dim), " of the gate of neuron ", neuron.neuron, " (",
                      compact(neuron.gate), ")",
                      std::abs(neuron.gate_from_dim) > 0.3 * std::abs(neuron.gate)
                          ? ": the FFN reads the massive value and cancels it."
                          : ".");
    }
  } else if (!entry.heads.empty()) {
    const auto head = std::max_element(entry.heads.begin(), entry.heads.end(),
                                       [](const HeadPart& a, const HeadPart& b) {
                                         return std::abs(a.contribution) < std::abs(b.contribution);
                                       });
    text += str_cat("Head ", head->head, " writes ", compact(head->contribution), ".");
  }
  return text;
}

std::vector<std::string> fall_words(const Explanation& explanation) {
  const auto& fall = explanation.result.fall;
  if (!fall) return {};
  if (fall->stages.empty()) {
    return {str_cat("No layer behind it halves the token's largest entry: after the last, layer ",
                    fall->last_layer, ", it is ", compact(fall->last_largest), ".")};
  }
  std::vector<std::string> words;
  for (const auto& stage : fall->stages) words.push_back(stage_words(stage));
  words.push_back(str_cat("After the last layer the token's largest entry is ",
                          compact(fall->last_largest),
                          ". Which part takes the value away is "
                          "exact; what for is not shown by it."));
  return words;
}

}  // namespace

std::string layer_words(const Explanation& explanation, std::int64_t layer) {
  return str_cat("layer ", layer, " (block ", layer + 1, " of ", explanation.model["layers"].dump(),
                 ")");
}

std::string token_words(const Explanation& explanation, const TargetToken& token,
                        const TextStyle& style) {
  const auto& prompt = explanation.prompts[token.prompt];
  const auto at = static_cast<std::size_t>(token.token);
  std::string text = str_cat("token ", token.token);
  if (at < prompt.shown.size()) {
    text += " (\"" + fit(printable(prompt.shown[at], style.utf8), 24, style.utf8) + "\")";
  } else if (at < prompt.ids.size()) {
    text += str_cat(" (id ", prompt.ids[at], ")");
  }
  return str_cat(text, " of prompt ", token.prompt);
}

ExplainWords explain_words(const Explanation& explanation, const TextStyle& style) {
  return {.target = target_words(explanation, style),
          .norm = norm_words(explanation),
          .ffn = ffn_words(explanation),
          .factorial = factorial_words(explanation),
          .fall = fall_words(explanation),
          .vocabulary = vocabulary_words(explanation, style),
          .dose = dose_words(explanation)};
}

}  // namespace onset::app
