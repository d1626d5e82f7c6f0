// What an explanation found, in words: the exact parts. The experiments' are in
// explain_words_experiments.cpp.

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

bool is_massive(const Explanation& explanation, const TargetToken& token, std::int64_t dim) {
  const auto& layers = explanation.scan.prompts[token.prompt].layers;
  const auto& entries =
      layers[static_cast<std::size_t>(explanation.result.target.layer)].massive_entries;
  return std::any_of(entries.begin(), entries.end(), [&](const StateEntry& entry) {
    return entry.token == token.token && entry.dim == dim;
  });
}

// "507 (23738)", "247 (1735.8; massive in 3 of 8 prompts, not in this one)".
std::string dim_words(const Explanation& explanation, std::size_t i) {
  const auto& target = explanation.result.target;
  const auto& shown = target.tokens[target.shown];
  const auto dim = target.dims[i];
  const auto massive =
      std::count_if(target.tokens.begin(), target.tokens.end(),
                    [&](const TargetToken& token) { return is_massive(explanation, token, dim); });
  std::string text = str_cat(dim, " (", compact(shown.values[i]));
  const bool here = is_massive(explanation, shown, dim);
  if (massive == 0 && target.massive) text += "; not massive";
  if (massive > 0 && massive < std::ssize(target.tokens)) {
    text += str_cat("; massive in ", massive, " of ", counted(std::ssize(target.tokens), "prompt"),
                    here ? "" : ", not in this one");
  }
  return text + ")";
}

std::string dims_words(const Explanation& explanation) {
  const auto& dims = explanation.result.target.dims;
  std::string text = dims.size() == 1 ? "dim " : "dims ";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    text += i == 0 ? "" : (i + 1 == dims.size() ? " and " : ", ");
    text += dim_words(explanation, i);
  }
  return text;
}

std::vector<std::string> target_words(const Explanation& explanation, const TextStyle& style) {
  const auto& target = explanation.result.target;
  const auto& shown = target.tokens[target.shown];
  std::string text = str_cat("Explained is ", layer_words(explanation, target.layer), ", ",
                             token_words(explanation, shown, style), ", ", dims_words(explanation),
                             "; in brackets the state after the layer.");
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

// A sentence for each explained dim; says whether the FFN reads any of them.
bool dims_read(const NormAnalysis& found, std::vector<std::string>& words) {
  const auto hidden = std::ssize(found.gain);
  bool any = false;
  for (std::size_t i = 0; i < found.massive_dims.size(); ++i) {
    const auto& dim = found.massive_dims[i];
    const bool hidden_from_ffn = dim.energy_after < 0.01 * dim.energy_before;
    any = any || !hidden_from_ffn;
    if (i >= dims_told) continue;
    words.push_back(str_cat("In dim ", dim.dim, " the norm reads x = ", compact(dim.x), ", ",
                            percent(dim.energy_before), " of the token's energy",
                            i == 0 ? " (its squared length)" : "", "; its gain is ",
                            compact(dim.gain), " (number ", dim.gain_rank + 1, " of ", hidden,
                            " by size), which leaves ", percent(dim.energy_after), ". ",
                            hidden_from_ffn ? "So the FFN does not read what stands in this dim."
                                            : "So the FFN reads this dim too."));
  }
  if (found.massive_dims.size() > dims_told) {
    words.push_back("Dims: " + more_words(found.massive_dims.size() - dims_told) + ".");
  }
  return any;
}

std::string spread_words(const NormAnalysis& found, bool reads_explained) {
  const auto& token = found.token;
  std::string text =
      str_cat("What the FFN reads", reads_explained ? "" : " instead", " is spread over about ",
              about(token.after.participation), " dims (participation ratio; ",
              about(token.before.participation), " before the gain");
  if (found.others) text += str_cat("; others ", about(found.others->after.participation));
  std::string listed;
  double sum = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, found.top_dims.size()); ++i) {
    const auto& dim = found.top_dims[i];
    sum += dim.energy_after;
    listed += str_cat(i == 0 ? "" : ", ", dim.dim, " (", percent(dim.energy_after), ", gain ",
                      compact(dim.gain), ")");
  }
  text +=
      str_cat(sum > 0.5 ? "), most of it in " : "). The largest are ", listed,
              "; the 16 largest gains hold ", percent(token.after.gain_top16), " of the energy");
  if (found.others) text += str_cat(", ", percent(found.others->after.gain_top16), " for others");
  return text + ".";
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
  std::string text = str_cat("The gain w of the norm before the FFN makes the ",
                             massive_word(explanation), "token ", compact(token.amplification),
                             " times as long as x_hat, the state divided by its RMS");
  if (found.others) {
    text += str_cat(
        "; the median of the ", found.other_count, " other tokens is ",
        compact(found.others->amplification), ", so it is ",
        found.relative_amplification < 1
            ? str_cat("shortened to ", compact(found.relative_amplification), " of the others")
            : str_cat("amplified ", compact(found.relative_amplification), " times as much"));
  }
  words.push_back(text + ".");

  const auto explained = dims_read(found, words);
  words.push_back(spread_words(found, explained));
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
  std::string text =
      str_cat("In dim ", entry.dim, " the FFN adds ", compact(entry.ffn_out), " and attention ",
              compact(entry.attn_out), " to ", compact(entry.resid_pre), ". ",
              entry.neurons_for_90_percent, " of ", entry.neuron_count,
              entry.neurons_for_90_percent == 1 ? " neurons carries" : " neurons carry",
              " 90 % of what the neurons write there: ");
  for (std::size_t i = 0; i < std::min<std::size_t>(2, entry.neurons.size()); ++i) {
    text += (i == 0 ? "" : ", ") + neuron_words(entry.neurons[i]);
  }
  return text + str_cat(". The sum over all neurons differs from the captured value by ",
                        compact(entry.ffn_difference), ".");
}

// In a mixture: who of the experts writes it; all of them where they write against each other by
// more than a hundredth.
std::string module_words(const EntryAttribution& entry) {
  auto modules = entry.modules;
  std::stable_sort(modules.begin(), modules.end(), [](const ModulePart& a, const ModulePart& b) {
    return std::abs(a.contribution) > std::abs(b.contribution);
  });
  const auto& writer = modules.front();
  std::string text =
      str_cat("Of the ", modules.size(), " modules that the token went through, ", writer.module,
              " writes most: ", compact(writer.contribution), " of ", compact(entry.neuron_sum));
  const bool opposed = std::any_of(modules.begin(), modules.end(), [&](const ModulePart& part) {
    return part.contribution * writer.contribution < 0 &&
           std::abs(part.contribution) > 0.01 * std::abs(writer.contribution);
  });
  if (!opposed) return text + ".";
  text += "; they oppose each other (";
  for (std::size_t i = 0; i < modules.size(); ++i) {
    text += str_cat(i == 0 ? "" : ", ", modules[i].module, modules[i].contribution < 0 ? " " : " +",
                    compact(modules[i].contribution));
  }
  return text + ").";
}

// "layer 11 W_down[507, 1229] = ..", with the module in a mixture.
std::string super_weight_place(const SuperWeight& found) {
  return str_cat("layer ", found.layer, found.module == "ffn" ? "" : " " + found.module, " W_down[",
                 found.dim, ", ", found.neuron, "] = ", compact(found.weight), " (input ",
                 compact(found.input), ", output ", compact(found.output), ")");
}

std::string super_weight_words(const SuperWeightResult& found) {
  std::string text;
  for (std::size_t i = 0; i < found.looks.size(); ++i) {
    const auto& look = found.looks[i];
    const std::string pass =
        i == 0   ? ""
        : i == 1 ? " In the pass without the first "
                 : str_cat(" In the pass without the first ", i == 2 ? "two" : str_cat(i), " ");
    if (!look.found) {
      text += i == 0 ? "No layer's down projection has both an input and an output above " +
                           compact(found.options.threshold) + ": no super weight."
                     : pass + "nothing stands out any more.";
      continue;
    }
    text +=
        (i == 0 ? "The super weight (the single weight that most of the value passes through) is "
                : pass + "the next is ") +
        super_weight_place(*look.found) + ".";
  }
  return text;
}

std::vector<std::string> ffn_words(const Explanation& explanation) {
  const auto& ffn = explanation.result.ffn;
  if (!ffn) return {};
  std::vector<std::string> words;
  words.reserve(ffn->entries.size());
  for (std::size_t i = 0; i < std::min(dims_told, ffn->entries.size()); ++i) {
    words.push_back(entry_words(ffn->entries[i]));
  }
  if (ffn->entries.front().modules.size() > 1) {
    words.push_back(module_words(ffn->entries.front()));
  }
  const auto& first = ffn->entries.front();
  if (!first.neurons.empty() && !first.neurons.front().gate_terms.empty()) {
    words.push_back(reads_words(first.neurons.front(), first.dim));
  }
  words.push_back(super_weight_words(ffn->super_weights));
  const auto& singular = ffn->singular;
  words.push_back(str_cat("The largest singular value of the down projection of ",
                          singular.module == "ffn" ? "" : singular.module + " of ", "layer ",
                          singular.layer, " is ", compact(singular.sigma1 / singular.sigma2),
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
    const auto* neuron = main_opponent(entry);
    if (entry.ffn_norm_gain && neuron != nullptr) {
      text += str_cat(
          "The FFN's norm has gain ", compact(*entry.ffn_norm_gain), " in that dim, which gives ",
          compact(neuron->gate_from_dim), " to the gate of neuron ", neuron->neuron, " (",
          compact(neuron->gate), " in all)",
          reads_the_dim(*neuron) ? ": the neuron reads the massive value and writes against it."
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
    return {str_cat("No later layer halves this token's largest entry from above ",
                    compact(fall->threshold), " (--min-abs): after the last, layer ",
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
