// The tables of `onset explain`, at most 80 columns wide, each with its words.

#include <algorithm>
#include <cmath>

#include "explain_report.h"
#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "text.h"

namespace onset::app {
namespace {

std::string heading(const std::string& title, const TextStyle& style) {
  return style.colour ? "\x1b[1m" + title + "\x1b[0m\n" : title + "\n";
}

std::string paragraphs(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& paragraph : words) text += wrap(paragraph, 80, 0) + "\n";
  return text + "\n";
}

std::string header_text(const Explanation& explanation, const TextStyle& style) {
  const auto& model = explanation.model;
  std::string text =
      "model  " +
      wrap(str_cat(printable(explanation.path, style.utf8), ": ",
                   model["architecture"].get<std::string>(), ", ", model["layers"].dump(),
                   " layers, hidden ", model["hidden"].dump(), ", BOS ",
                   explanation.bos ? str_cat(*explanation.bos) : "none"),
           80, 7) +
      "\n";
  if (explanation.text) {
    const auto& used = *explanation.text;
    text +=
        "text   " +
        wrap(str_cat(printable(used.source, style.utf8), ", ", used.tokens, " tokens",
                     used.shortened ? " of it" : "", "; perplexity in windows of ",
                     used.windows.window, used.windows.bos ? " with BOS" : " without BOS",
                     ", sinks in ", counted(used.samples, "sample"), " of ", used.sample_length),
             80, 7) +
        "\n";
  }
  return text + "\n";
}

std::string norm_rows(const NormAnalysis& norm) {
  std::string text =
      "   dim         x     x_hat      gain   product  energy before   after   others\n";
  const auto row = [](const NormDim& dim) {
    return pad_left(str_cat(dim.dim), 6) + pad_left(compact(dim.x), 10) +
           pad_left(compact(dim.normalised), 10) + pad_left(compact(dim.gain), 10) +
           pad_left(compact(dim.product), 10) + pad_left(percent(dim.energy_before), 15) +
           pad_left(percent(dim.energy_after), 8) + pad_left(compact(dim.others_product), 9) + "\n";
  };
  for (const auto& dim : norm.massive_dims) text += row(dim);
  for (std::size_t i = 0; i < std::min<std::size_t>(6, norm.top_dims.size()); ++i) {
    text += row(norm.top_dims[i]);
  }
  return text + "others': median |product| of the other tokens\n";
}

std::string neuron_rows(const std::vector<NeuronPart>& neurons, std::size_t most) {
  std::string text = "  neuron              gate       up  product   weight     adds    share\n";
  for (std::size_t i = 0; i < std::min(most, neurons.size()); ++i) {
    const auto& neuron = neurons[i];
    const auto name = neuron.module == "ffn" ? str_cat(neuron.neuron)
                                             : str_cat(neuron.module, " ", neuron.neuron);
    text += "  " + pad_right(name, 14) + pad_left(compact(neuron.gate), 10) +
            pad_left(compact(neuron.up), 9) + pad_left(compact(neuron.product), 9) +
            pad_left(compact(neuron.weight), 9) + pad_left(compact(neuron.contribution), 9) +
            pad_left(neuron.share ? percent(*neuron.share) : "-", 9) + "\n";
  }
  return text;
}

std::string ffn_rows(const FfnResult& ffn) {
  std::string text;
  for (const auto& entry : ffn.entries) {
    text += str_cat("dim ", entry.dim, ": ", compact(entry.resid_pre), " + attention ",
                    compact(entry.attn_out), " + FFN ", compact(entry.ffn_out), " = ",
                    compact(entry.resid_post), "\n") +
            neuron_rows(entry.neurons, 5);
  }
  if (ffn.stages.empty()) return text;
  text += "stages    dim    FFN adds  largest neuron and what it adds    neurons for 90 %\n";
  for (const auto& stage : ffn.stages) {
    const auto& entry = stage.entry;
    if (entry.neurons.empty()) continue;
    const auto& neuron = entry.neurons.front();
    text += pad_left(str_cat(entry.layer), 3) +
            (stage.stage.kind == StageKind::rise ? " rise" : " fall") +
            pad_left(str_cat(entry.dim), 5) + pad_left(compact(entry.ffn_out), 12) +
            pad_left(str_cat(neuron.neuron), 9) + pad_left(compact(neuron.contribution), 12) +
            pad_left(str_cat(entry.neurons_for_90_percent), 29) + "\n";
  }
  return text;
}

std::string factorial_rows(const FactorialResult& factorial) {
  std::string text =
      "norm's gain   FFN                 max |x|  token's  later max  perplexity  sinks\n";
  for (const auto& cell : factorial.cells) {
    const std::string norm =
        cell.a == 1.0 ? "as is" : (cell.a == 0.0 ? "flat" : str_cat("flat, a = ", cell.a));
    text += pad_right(norm, 14) + pad_right(ffn_change_words(cell.ffn), 18) +
            pad_left(compact(cell.at_layer), 9) + pad_left(compact(cell.of_token), 9) +
            pad_left(compact(cell.later), 11) +
            pad_left(cell.text ? compact(cell.text->perplexity) : "-", 12) +
            pad_left(cell.text ? percent(cell.text->sinks.sink_rate) : "-", 7) + "\n";
  }
  return text;
}

std::string fall_rows(const FallResult& fall) {
  std::string text;
  for (const auto& stage : fall.stages) {
    const auto& entry = stage.entry;
    text += str_cat("layer ", entry.layer, ", dim ", entry.dim, ": ", compact(entry.resid_pre),
                    " + attention ", compact(entry.attn_out), " + FFN ", compact(entry.ffn_out),
                    " = ", compact(entry.resid_post), "\n") +
            neuron_rows(entry.opposing, 5);
    auto heads = entry.heads;
    std::stable_sort(heads.begin(), heads.end(), [](const HeadPart& a, const HeadPart& b) {
      return std::abs(a.contribution) > std::abs(b.contribution);
    });
    text += "  heads:";
    for (std::size_t h = 0; h < std::min<std::size_t>(4, heads.size()); ++h) {
      text +=
          str_cat(h == 0 ? " " : ", ", heads[h].head, " (", compact(heads[h].contribution), ")");
    }
    text += "\n";
  }
  return text;
}

std::string vocabulary_rows(const VocabularyResult& vocabulary) {
  std::string levels = "quantile";
  std::string values = "max |x| ";
  for (std::size_t i = 0; i < vocabulary.levels.size(); ++i) {
    levels += pad_left(shortest(vocabulary.levels[i]), 8);
    values += pad_left(compact(vocabulary.quantiles[i]), 8);
  }
  return levels + "\n" + values + "\n";
}

std::string condition_name(const DoseResult& dose, const DoseCondition& condition) {
  if (condition.dose) return *condition.dose == 1.0 ? "as is" : "times " + compact(*condition.dose);
  if (condition.name == "mean") return "mean";
  if (condition.name == "control_dim") return str_cat("dim ", dose.control_dim, " to 0");
  return str_cat("token ", dose.control_position, " to 0");
}

// Four layers behind the edited one, evenly spread.
std::vector<std::size_t> layers_shown(const DoseResult& dose, std::size_t layers) {
  std::vector<std::size_t> shown;
  const auto first = static_cast<std::size_t>(dose.layer) + 1;
  if (first >= layers) return shown;
  const std::size_t count = std::min<std::size_t>(4, layers - first);
  for (std::size_t i = 0; i < count; ++i) {
    shown.push_back(count == 1 ? first : first + i * (layers - 1 - first) / (count - 1));
  }
  return shown;
}

std::string dose_rows(const DoseResult& dose) {
  if (dose.conditions.empty()) return {};
  const auto shown = layers_shown(dose, dose.conditions.front().keys.size());
  std::string text = "massive entries  perplexity  sink rate  at layer";
  for (const auto layer : shown) text += pad_left(str_cat(layer), 8);
  text += "\n";
  for (const auto& condition : dose.conditions) {
    text += pad_right(condition_name(dose, condition), 15) +
            pad_left(compact(condition.text.perplexity), 12) +
            pad_left(percent(condition.text.sinks.sink_rate), 11) + std::string(10, ' ');
    for (const auto layer : shown) {
      text += pad_left(percent(condition.text.sinks.layer_rate[layer]), 8);
    }
    text += "\n";
  }
  if (shown.empty()) return text;
  const auto middle = shown[shown.size() / 2];
  text += str_cat("keys of layer ", middle, "      |k|  others  |v|  others   cos(q, k)  others\n");
  for (const auto& condition : dose.conditions) {
    const auto& key = condition.keys[middle];
    text += pad_right(condition_name(dose, condition), 15) + pad_left(compact(key.key_norm), 10) +
            pad_left(compact(key.others_key_norm), 8) + pad_left(compact(key.value_norm), 8) +
            pad_left(compact(key.others_value_norm), 8) + pad_left(compact(key.query_cosine), 12) +
            pad_left(compact(key.others_query_cosine), 9) + "\n";
  }
  return text;
}

}  // namespace

std::string explanation_text(const Explanation& explanation, const TextStyle& style) {
  const auto& result = explanation.result;
  const auto words = explain_words(explanation, style);
  std::string text = header_text(explanation, style) + paragraphs(words.target);
  if (result.norm) {
    text += heading("1. The norm before the FFN", style);
    if (result.norm->ffn_norm) text += norm_rows(*result.norm->ffn_norm);
    text += paragraphs(words.norm);
  }
  if (result.ffn) {
    text +=
        heading("2. The neurons of the FFN", style) + ffn_rows(*result.ffn) + paragraphs(words.ffn);
  }
  if (result.factorial) {
    text += heading("3. Norm and FFN together", style) + factorial_rows(*result.factorial) +
            paragraphs(words.factorial);
  }
  if (result.fall) {
    text += heading("4. The fall", style) + fall_rows(*result.fall) + paragraphs(words.fall);
  }
  if (result.vocabulary) {
    text += heading("5. Which tokens can carry it", style) + vocabulary_rows(*result.vocabulary) +
            paragraphs(words.vocabulary);
  }
  if (result.dose) {
    text +=
        heading("6. Dose and response", style) + dose_rows(*result.dose) + paragraphs(words.dose);
  }
  return text;
}

}  // namespace onset::app
