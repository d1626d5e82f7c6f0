#include "explain_words_parts.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {

std::string massive_word(const Explanation& explanation) {
  return explanation.result.target.massive ? "massive " : "";
}

std::string text_words(const TextUsed& used, const TextStyle& style) {
  return str_cat(printable(used.source, style.utf8), ", ", used.tokens, " tokens",
                 used.shortened ? " of it" : "", "; perplexity in windows of ", used.windows.window,
                 used.windows.bos ? " with BOS" : " without BOS", ", sinks in ",
                 counted(used.samples, "sample"), " of ", used.sample_length);
}

std::string short_text_words(const TextUsed& used) {
  if (used.tokens >= sink_sample_length) return "";
  return str_cat("the text of the experiments has ", counted(used.tokens, "token"),
                 ": the perplexity of so few hangs on single words, and where ", used.sample_length,
                 " tokens are all there is to look at, attention to the first is no sink in the "
                 "usual sense (samples of ",
                 sink_sample_length, " tokens); a text of hundreds of tokens says more");
}

std::string ranges(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += str_cat(text.empty() ? "" : ", ", numbers[begin]);
    if (end - begin > 1) text += str_cat(end - begin > 2 ? " to " : ", ", numbers[end - 1]);
    begin = end;
  }
  return text;
}

std::string about(double value) {
  return std::abs(value) < 10 || !std::isfinite(value) ? compact(value)
                                                       : str_cat(std::llround(value));
}

std::string perplexity_text(double value) {
  if (!std::isfinite(value) || value < 1e5) return compact(value);
  auto exponent = static_cast<int>(std::floor(std::log10(value)));
  auto digits = fixed(value / std::pow(10.0, exponent), 2);
  if (digits.size() > 4) digits = fixed(value / std::pow(10.0, ++exponent), 2);  // 9.996 is 10.00
  return str_cat(digits, "e", exponent);
}

std::string neuron_name(const NeuronPart& neuron) {
  return neuron.module == "ffn" ? str_cat(neuron.neuron)
                                : str_cat(neuron.module, " ", neuron.neuron);
}

std::string more_words(std::size_t count) { return str_cat("and ", count, " more (--json)"); }

std::vector<std::size_t> layers_by_change(const DoseResult& dose) {
  if (dose.conditions.empty()) return {};
  const auto layers = dose.conditions.front().keys.size();
  std::vector<double> change(layers, 0.0);
  std::vector<std::size_t> order;
  for (auto l = static_cast<std::size_t>(dose.layer) + 1; l < layers; ++l) {
    double low = 1;
    double high = 0;
    for (const auto& condition : dose.conditions) {
      if (!condition.dose) continue;
      low = std::min(low, condition.text.sinks.layer_rate[l]);
      high = std::max(high, condition.text.sinks.layer_rate[l]);
    }
    change[l] = high - low;
    order.push_back(l);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return change[a] > change[b]; });
  return order;
}

const NeuronPart* main_opponent(const EntryAttribution& entry) {
  if (entry.opposing.empty()) return nullptr;
  const auto& main = entry.opposing.front();
  // The terms of the gate are known of the largest neurons only.
  const auto found =
      std::find_if(entry.neurons.begin(), entry.neurons.end(), [&](const NeuronPart& part) {
        return part.module == main.module && part.neuron == main.neuron;
      });
  if (found == entry.neurons.end() || found->gate_terms.empty() || found->gate == 0) return nullptr;
  return &*found;
}

bool reads_the_dim(const NeuronPart& neuron) { return neuron.gate_from_dim / neuron.gate > 0.3; }

std::string condition_name(const DoseResult& dose, const DoseCondition& condition) {
  if (condition.dose)
    return *condition.dose == 1.0 ? "as is" : "times " + shortest(*condition.dose);
  if (condition.name == "mean") return "mean";
  if (condition.name == "block_write") {
    return dose.attention_removed ? "no write" : "no ffn_out";
  }
  if (condition.name == "control_dim") return str_cat("dim ", dose.control_dim, " to 0");
  return str_cat("token ", dose.control_position, " to 0");
}

}  // namespace onset::app
