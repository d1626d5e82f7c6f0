// The numbers at the head of a report.

#include "report_words.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/report/explain_figures.h"
#include "onset/report/html.h"
#include "report_parts.h"
#include "text.h"

namespace onset::app {
namespace {

void add_scan_numbers(const ModelReport& report, std::vector<Fact>& facts) {
  const auto page = scan_page_input(report.scan, {});
  auto scanned = scan_highlights(page);
  facts.insert(facts.end(), scanned.begin(), scanned.end());
}

void add_explain_numbers(const ModelReport& report, std::vector<Fact>& facts) {
  if (const auto* entry = main_entry(report); entry != nullptr && !entry->neurons.empty()) {
    std::string names;
    double share = 0;
    for (std::size_t i = 0; i < main_neurons(*entry); ++i) {
      names += (i == 0 ? "" : ", ") + short_neuron_name(entry->neurons[i]);
      share += entry->neurons[i].share.value_or(std::nan(""));
    }
    facts.push_back({"neurons", names,
                     std::isnan(share) ? std::string() : share_text(share) + " of the FFN's part"});
  }
  if (const auto* norm = norm_of(report); norm != nullptr && norm->others) {
    facts.push_back({"amplification by the norm", number_text(norm->relative_amplification) + " x",
                     "of the median other token's"});
  }
  if (const auto* norm = norm_of(report); norm != nullptr && !norm->massive_dims.empty()) {
    facts.push_back({"its gain in the dim", number_text(norm->massive_dims.front().gain),
                     "norm before the FFN"});
  }
  if (const auto* found = factorial_of(report)) {
    if (const auto* held = cell_of(*found, 1.0, FfnChange::normalised)) {
      facts.push_back(
          {"largest |x|, FFN's product normalised", number_text(held->at_layer),
           str_cat("as it is ", number_text(cell_of(*found, 1.0, FfnChange::as_is)->at_layer))});
    }
    if (const auto* one = interaction_of(*found)) {
      facts.push_back({"interaction norm x FFN", number_text(one->value),
                       "of flattening and normalising; a logarithm, 0 is none"});
    }
  }
  if (!report.explanation) return;
  const auto& result = report.explanation->result;
  if (result.vocabulary) {
    const auto& found = *result.vocabulary;
    facts.push_back(
        {"vocabulary that turns massive",
         share_text(static_cast<double>(found.massive) / static_cast<double>(found.tokens)),
         "alone at position 0"});
  }
  if (result.dose) {
    const auto* full = condition_of(*result.dose, "dose", 1.0);
    const auto* none = condition_of(*result.dose, "dose", 0.0);
    if (full != nullptr && none != nullptr) {
      facts.push_back(
          {"sinks of later layers, massive entries at 0",
           share_text(sinks_behind(none->text.sinks, result.dose->layer)),
           str_cat("as it is ", share_text(sinks_behind(full->text.sinks, result.dose->layer)))});
      facts.push_back({"perplexity, massive entries at 0", number_text(none->text.perplexity),
                       "as it is " + number_text(full->text.perplexity)});
    }
  }
}

}  // namespace

std::vector<Fact> report_highlights(const ModelReport& report) {
  std::vector<Fact> facts;
  add_scan_numbers(report, facts);
  add_explain_numbers(report, facts);
  if (report.rigidity) {
    const auto& stream = report.rigidity->result.sites.front();
    const double pairs = plateau_mean(stream.token.mean_prompts, report.rigidity->scan);
    if (!std::isnan(pairs)) {
      facts.push_back(
          {"rigidity", fixed(pairs, 4),
           stream.baseline
               ? "cosine between prompts; an ordinary token " +
                     fixed(plateau_mean(stream.baseline->mean_prompts, report.rigidity->scan), 2)
               : std::string("cosine between prompts")});
    }
  }
  if (report.sinks) {
    facts.push_back({"sink rate", share_text(report.sinks->result.summary.sink_rate),
                     "of samples, layers and heads"});
  }
  return facts;
}

}  // namespace onset::app
