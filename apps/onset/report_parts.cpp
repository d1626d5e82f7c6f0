#include "report_parts.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/report/explain_figures.h"

namespace onset::app {

const EntryAttribution* main_entry(const ModelReport& report) {
  if (!report.explanation || !report.explanation->result.ffn) return nullptr;
  const auto& entries = report.explanation->result.ffn->entries;
  return entries.empty() ? nullptr : &entries.front();
}

const NormAnalysis* norm_of(const ModelReport& report) {
  if (!report.explanation || !report.explanation->result.norm) return nullptr;
  const auto& norm = report.explanation->result.norm->ffn_norm;
  return norm ? &*norm : nullptr;
}

const FactorialResult* factorial_of(const ModelReport& report) {
  if (!report.explanation || !report.explanation->result.factorial) return nullptr;
  return &*report.explanation->result.factorial;
}

const Interaction* interaction_of(const FactorialResult& result) {
  for (const auto& one : result.interactions) {
    if (one.a == 0.0 && one.ffn == FfnChange::normalised) return &one;
  }
  return nullptr;
}

std::string short_neuron_name(const NeuronPart& neuron) {
  return neuron.module == "ffn" ? str_cat(neuron.neuron)
                                : str_cat(neuron.neuron, " of ", module_label(neuron.module));
}

std::size_t main_neurons(const EntryAttribution& entry) {
  const auto needed =
      static_cast<std::size_t>(std::max<std::int64_t>(1, entry.neurons_for_90_percent));
  return std::min({needed, std::size_t{2}, entry.neurons.size()});
}

double plateau_mean(const std::vector<double>& values, const ScanResult& scan) {
  const auto first = static_cast<std::size_t>(scan.me_layer.value_or(0));
  const auto last = static_cast<std::size_t>(
      scan.last_massive_layer.value_or(static_cast<std::int64_t>(values.size()) - 1));
  double sum = 0;
  double count = 0;
  for (std::size_t l = first; l <= last && l < values.size(); ++l) {
    if (std::isnan(values[l])) continue;
    sum += values[l];
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

}  // namespace onset::app
