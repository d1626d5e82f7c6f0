// The answers of a report: a question each, with this model's numbers.

#include "report_words.h"

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/explain_figures.h"
#include "onset/report/html.h"
#include "report_parts.h"

namespace onset::app {
namespace {

std::string neuron_list(const std::vector<NeuronPart>& neurons, std::size_t most) {
  std::string text;
  const auto count = std::min(most, neurons.size());
  for (std::size_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : (i + 1 == count ? " and " : ", ");
    text += short_neuron_name(neurons[i]);
    text += str_cat(" (", number_text(neurons[i].contribution),
                    neurons[i].share ? ", " + share_text(*neurons[i].share) : "", ")");
  }
  return text;
}

// In a mixture: the expert that writes most, and the others together.
std::string module_answer(const EntryAttribution& entry) {
  const auto writer = std::max_element(
      entry.modules.begin(), entry.modules.end(), [](const auto& a, const auto& b) {
        return std::fabs(a.contribution) < std::fabs(b.contribution);
      });
  return str_cat("By experts: ", module_label(writer->module), " adds ",
                 number_text(writer->contribution), ", all others of the token together ",
                 number_text(entry.neuron_sum - writer->contribution), ".");
}

Fact writers_answer(const ModelReport& report, const EntryAttribution& entry) {
  const bool ffn = std::fabs(entry.ffn_out) >= std::fabs(entry.attn_out);
  std::string text = str_cat(
      "In layer ", entry.layer, " (block ", entry.layer + 1, " of ",
      report.scan.model["layers"].dump(), ") the FFN adds ", number_text(entry.ffn_out), " to dim ",
      entry.dim, " and attention ", number_text(entry.attn_out), "; ", number_text(entry.resid_pre),
      " was there before, ", number_text(entry.resid_post), " is there after it.");
  if (ffn && !entry.neurons.empty()) {
    text +=
        str_cat(" Of the FFN's ", number_text(static_cast<double>(entry.neuron_count)),
                " neurons, ", neuron_list(entry.neurons, main_neurons(entry)), " write",
                main_neurons(entry) == 1 ? "s" : "", " most of it; ",
                entry.neurons_for_90_percent == 1 ? std::string("a single one carries")
                                                  : str_cat(entry.neurons_for_90_percent, " carry"),
                " 90 % of all that is written there.");
    if (entry.modules.size() > 1) text += " " + module_answer(entry);
  }
  return {"Who writes the massive value?", text};
}

Fact norm_answer(const NormAnalysis& norm) {
  std::string text;
  bool unread = false;
  if (!norm.massive_dims.empty()) {
    const auto& dim = norm.massive_dims.front();
    unread = dim.energy_after < 0.01 * dim.energy_before || dim.energy_after < 1e-3;
    text = str_cat(unread ? "No: " : "Partly: ", "the gain of the norm before the FFN in dim ",
                   dim.dim, " is ", number_text(dim.gain), " (rank ", dim.gain_rank + 1, " of ",
                   norm.gain.size(), " by size). The dim holds ", share_text(dim.energy_before),
                   " of the token's energy (its squared length) before the gain and ",
                   share_text(dim.energy_after), " after it",
                   unread ? ", so the FFN writes it without reading it. " : ". ");
  }
  text += str_cat("What the gain amplifies ", unread ? "instead is " : "is ", "spread over about ",
                  about(norm.token.after.participation), " dims, most in ");
  for (std::size_t i = 0; i < std::min<std::size_t>(4, norm.top_dims.size()); ++i) {
    const auto& dim = norm.top_dims[i];
    text += str_cat(i == 0 ? "" : ", ", dim.dim, " (", share_text(dim.energy_after), ", gain ",
                    number_text(dim.gain), ")");
  }
  text += str_cat("; it makes the token ", number_text(norm.token.amplification),
                  " times as long as x_hat, the state divided by its RMS");
  if (norm.others) {
    text += str_cat(", the median other token ", number_text(norm.others->amplification),
                    " times: ", number_text(norm.relative_amplification), " times as much");
  }
  return {"Does the FFN read what it writes, and what does the norm amplify?", text + "."};
}

Fact factorial_answer(const FactorialResult& found) {
  const auto& plain = *cell_of(found, 1.0, FfnChange::as_is);
  std::string text =
      str_cat("The largest |x| after layer ", found.layer, " (geometric mean over the prompts) is ",
              number_text(plain.at_layer), " as it is");
  const auto* flat = cell_of(found, 0.0, FfnChange::as_is);
  const auto* held = cell_of(found, 1.0, FfnChange::normalised);
  const auto* both = cell_of(found, 0.0, FfnChange::normalised);
  if (flat != nullptr) {
    text += str_cat(", ", number_text(flat->at_layer),
                    " with every gain of the norm set to their mean (flattened)");
  }
  if (held != nullptr) {
    text += str_cat(", ", number_text(held->at_layer),
                    " with the FFN's product act(gate) * up divided by its RMS (normalised)");
  }
  if (both != nullptr) text += str_cat(", and ", number_text(both->at_layer), " with both");
  text += ".";
  if (flat != nullptr && held != nullptr) {
    const bool needs_gain = flat->at_layer < 0.5 * plain.at_layer;
    const bool needs_ffn = held->at_layer < 0.5 * plain.at_layer;
    text += needs_gain && needs_ffn
                ? " So it needs both the shape of the gain and the size of the FFN's product."
            : needs_ffn ? " So the value needs the size of the FFN's product, and not the shape of "
                          "the gain."
            : needs_gain
                ? " So the value needs the shape of the gain, and not the size of the product."
                : " So neither alone is needed for most of it.";
  }
  const auto* one = interaction_of(found);
  const std::string effects = interaction_words(found, FfnChange::normalised);
  if (one != nullptr && !effects.empty()) {
    text += str_cat(" In factors, ", effects, " (interaction ", number_text(one->value),
                    ", a factor of ", number_text(std::exp(one->value)),
                    "; 0, a factor of 1, is none).");
  }
  return {"What if the gain is flattened, the FFN's product normalised, or both?", text};
}

// What the neuron that writes most against the entry reads of it.
std::string reading_words(const EntryAttribution& entry) {
  if (!entry.ffn_norm_gain) return {};
  std::string text =
      str_cat("; the norm's gain in the dim is ", number_text(*entry.ffn_norm_gain), " here");
  const auto* neuron = main_opponent(entry);
  if (neuron == nullptr) return text;
  text += str_cat(", and the dim gives ", number_text(neuron->gate_from_dim),
                  " to that neuron's gate, which is ", number_text(neuron->gate), " in all");
  if (reads_the_dim(*neuron)) text += ": the neuron reads the value and writes against it";
  return text;
}

// "; most by head 3 (-120)": of a fall that attention writes.
std::string head_words(const EntryAttribution& entry) {
  if (entry.heads.empty()) return {};
  const auto head = std::max_element(
      entry.heads.begin(), entry.heads.end(), [&](const HeadPart& a, const HeadPart& b) {
        return a.contribution * entry.attn_out < b.contribution * entry.attn_out;
      });
  return str_cat(", most by head ", head->head, " (", number_text(head->contribution), ")");
}

Fact fall_answer(const FallResult& fall) {
  std::string text;
  for (const auto& stage : fall.stages) {
    const auto& entry = stage.entry;
    text += str_cat(text.empty() ? "" : " ", "Layer ", entry.layer, " takes dim ", entry.dim,
                    " from ", number_text(entry.resid_pre), " to ", number_text(entry.resid_post),
                    ": its FFN adds ", number_text(entry.ffn_out), ", its attention ",
                    number_text(entry.attn_out));
    if (std::fabs(entry.attn_out) > std::fabs(entry.ffn_out)) {
      text += head_words(entry);
    } else if (!entry.opposing.empty()) {
      text += str_cat(". The largest part of the FFN's is neuron ", neuron_list(entry.opposing, 1),
                      reading_words(entry));
    }
    text += ".";
  }
  if (text.empty()) text = "No later layer halves the token's largest entry.";
  text += str_cat(" After the last layer the token's largest entry is ",
                  number_text(fall.last_largest), ".");
  return {"What takes it away again?", text};
}

Fact vocabulary_answer(const VocabularyResult& found) {
  const double share = static_cast<double>(found.massive) / static_cast<double>(found.tokens);
  std::string text =
      str_cat("Alone at position 0, ", number_text(static_cast<double>(found.massive)), " of ",
              number_text(static_cast<double>(found.tokens)), " vocabulary entries (",
              share_text(share), ") become massive, ",
              found.massive_at_dims == found.massive
                  ? std::string("all")
                  : number_text(static_cast<double>(found.massive_at_dims)),
              " of them in the dims explained (above ", number_text(found.threshold),
              ": the rule with the layer's median on the prompts).");
  text += share > 0.95   ? " It is the place that decides, and hardly the token."
          : share < 0.05 ? " The first place alone does not make a token massive."
                         : " Place and token both matter.";
  return {"Which tokens can carry it?", text};
}

Fact dose_answer(const DoseResult& dose) {
  std::string text =
      str_cat("The share of the heads of the layers after layer ", dose.layer,
              " that are sinks, and the perplexity of a text, with the massive entries ");
  bool first = true;
  for (const auto& condition : dose.conditions) {
    const bool plain = condition.dose == 1.0;
    text +=
        str_cat(first ? "" : "; ", plain ? "as they are" : dose_label(dose, condition), ": ",
                share_text(sinks_behind(condition.text.sinks, dose.layer)),
                first ? " sinks, perplexity " : ", ", perplexity_text(condition.text.perplexity));
    first = false;
  }
  text += ".";
  const auto* full = condition_of(dose, "dose", 1.0);
  const auto* none = condition_of(dose, "dose", 0.0);
  const auto* mean = condition_of(dose, "mean");
  text += " Of these, " + dose_conclusion(dose);
  if (full != nullptr && none != nullptr) {
    const double needed = 1.1 * full->text.perplexity;
    if (none->text.perplexity < needed) {
      text += " The perplexity hardly rises without them: this text does not need them.";
    } else if (mean != nullptr && mean->text.perplexity < needed) {
      text +=
          " Their mean over prompts does as well as the values themselves: the model needs them "
          "as a constant.";
    }
  }
  if (const auto words = perplexity_apart(dose); !words.empty()) text += " " + words;
  return {"Are sinks and perplexity their consequence (dose and response)?", text};
}

Fact rigidity_answer(const ModelRigidity& rigidity) {
  const auto words = rigidity_paragraphs(rigidity);
  return {"Is the massive token's state rigid?", join(words, " ")};
}

// What a reader might take from the page although nothing there says it.
Fact limits_answer(const ExplainResult& result) {
  std::string text;
  if (result.ffn) {
    text +=
        "That a neuron is the cause because it writes much: its part is exact, what it would have "
        "written on another input is not known. ";
  }
  if (result.fall) text += "What the fall in later layers is for. ";
  if (result.vocabulary) text += "What tokens do elsewhere than alone at position 0. ";
  if (result.dose) {
    text +=
        "What exactly the perplexity is lost for, and whether a model trained otherwise would have "
        "sinks without such entries. ";
  }
  return {"What does this not show?",
          text +
              "That other prompts and texts than those at the end of the page give the same "
              "numbers. The thresholds of a massive entry and of a sink are conventions."};
}

}  // namespace

std::vector<Fact> report_answers(const ModelReport& report) {
  std::vector<Fact> answers;
  if (const auto* entry = main_entry(report)) answers.push_back(writers_answer(report, *entry));
  if (const auto* norm = norm_of(report)) answers.push_back(norm_answer(*norm));
  if (const auto* found = factorial_of(report)) answers.push_back(factorial_answer(*found));
  if (report.explanation && report.explanation->result.fall) {
    answers.push_back(fall_answer(*report.explanation->result.fall));
  }
  if (report.explanation && report.explanation->result.vocabulary) {
    answers.push_back(vocabulary_answer(*report.explanation->result.vocabulary));
  }
  if (report.rigidity) answers.push_back(rigidity_answer(*report.rigidity));
  if (report.sinks) answers.push_back(sinks_answer(report));
  if (report.explanation && report.explanation->result.dose) {
    answers.push_back(dose_answer(*report.explanation->result.dose));
  }
  if (report.explanation) answers.push_back(limits_answer(report.explanation->result));
  return answers;
}

}  // namespace onset::app
