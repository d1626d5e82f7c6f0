// What the words of a report look up in its results.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "onset/report/page.h"
#include "report_model.h"

namespace onset::app {

// Of the first massive dim at the ME layer; nothing where it was not explained.
[[nodiscard]] const EntryAttribution* main_entry(const ModelReport& report);
// Of the norm before the FFN; nothing where there is none.
[[nodiscard]] const NormAnalysis* norm_of(const ModelReport& report);
[[nodiscard]] const FactorialResult* factorial_of(const ModelReport& report);
// That of the flattened gain and the normalised product.
[[nodiscard]] const Interaction* interaction_of(const FactorialResult& result);

// "1229"; in mixtures "17 of expert 5".
[[nodiscard]] std::string short_neuron_name(const NeuronPart& neuron);
// How many neurons are named: the few that carry nearly all, two where it takes many.
[[nodiscard]] std::size_t main_neurons(const EntryAttribution& entry);

// Mean of one value a layer over the massive layers, NaN left out; NaN of nothing.
[[nodiscard]] double plateau_mean(const std::vector<double>& values, const ScanResult& scan);

// "Where are the attention sinks?"
[[nodiscard]] Fact sinks_answer(const ModelReport& report);

}  // namespace onset::app
