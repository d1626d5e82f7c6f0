// The tables of `onset explain`, at most 80 columns wide, each with its words.

#include <algorithm>
#include <cmath>

#include "explain_report.h"
#include "explain_words_parts.h"
#include "model_json.h"
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
                   explanation.bos ? str_cat(*explanation.bos) : "none",
                   adapter_words(model["adapter"])),
           80, 7) +
      "\n";
  if (explanation.text) {
    text += "text   " + wrap(text_words(*explanation.text, style), 80, 7) + "\n";
  }
  return text + "\n";
}

std::string norm_rows(const NormAnalysis& norm) {
  std::string text =
      "   dim         x     x_hat      gain   product  energy before   after   others\n";
  const auto row = [](const NormDim& dim, bool explained) {
    return pad_left(str_cat(explained ? "*" : "", dim.dim), 6) + pad_left(compact(dim.x), 10) +
           pad_left(compact(dim.normalised), 10) + pad_left(compact(dim.gain), 10) +
           pad_left(compact(dim.product), 10) + pad_left(percent(dim.energy_before), 15) +
           pad_left(percent(dim.energy_after), 8) + pad_left(compact(dim.others_product), 9) + "\n";
  };
  const auto& explained = norm.massive_dims;
  for (std::size_t i = 0; i < std::min(dims_told, explained.size()); ++i) {
    text += row(explained[i], true);
  }
  if (explained.size() > dims_told) text += "  " + more_words(explained.size() - dims_told) + "\n";
  std::size_t rows = 0;
  for (const auto& dim : norm.top_dims) {
    const bool told = std::any_of(explained.begin(), explained.end(),
                                  [&](const NormDim& other) { return other.dim == dim.dim; });
    if (!told && rows++ < 6) text += row(dim, false);
  }
  return text + "*: explained; others: median |product| of the other tokens\n";
}

std::string neuron_rows(const std::vector<NeuronPart>& neurons, std::size_t most) {
  std::string text = "  neuron              gate       up  product   weight     adds    share\n";
  for (std::size_t i = 0; i < std::min(most, neurons.size()); ++i) {
    const auto& neuron = neurons[i];
    text += "  " + pad_right(neuron_name(neuron), 14) + pad_left(compact(neuron.gate), 10) +
            pad_left(compact(neuron.up), 9) + pad_left(compact(neuron.product), 9) +
            pad_left(compact(neuron.weight), 9) + pad_left(compact(neuron.contribution), 9) +
            pad_left(neuron.share ? percent(*neuron.share) : "-", 9) + "\n";
  }
  return text;
}

std::string ffn_rows(const FfnResult& ffn) {
  std::string text;
  for (std::size_t i = 0; i < std::min(dims_told, ffn.entries.size()); ++i) {
    const auto& entry = ffn.entries[i];
    text += str_cat("dim ", entry.dim, ": ", compact(entry.resid_pre), " + attention ",
                    compact(entry.attn_out), " + FFN ", compact(entry.ffn_out), " = ",
                    compact(entry.resid_post), "\n") +
            neuron_rows(entry.neurons, 5);
  }
  if (ffn.entries.size() > dims_told) {
    text += "dims: " + more_words(ffn.entries.size() - dims_told) + "\n";
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
            pad_left(neuron_name(neuron), 16) + pad_left(compact(neuron.contribution), 12) +
            pad_left(str_cat(entry.neurons_for_90_percent), 22) + "\n";
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
    text +=
        heading("3. Norm and FFN together (M: max |x|, geometric mean over the prompts)", style) +
        factorial_rows(*result.factorial) + paragraphs(words.factorial);
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
  if (explanation.masked) {
    text += heading("With the mask beside without", style) + explain_masked_text(explanation);
  }
  return text;
}

}  // namespace onset::app
