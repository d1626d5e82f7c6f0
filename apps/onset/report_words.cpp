#include "report_words.h"

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/explain_figures.h"
#include "onset/report/html.h"

namespace onset::app {
namespace {

// Layers in which fewer of the heads are sinks count as having none.
constexpr double hardly = 0.02;

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

std::string neuron_name(const NeuronPart& neuron) {
  return neuron.module == "ffn" ? str_cat(neuron.neuron)
                                : str_cat(neuron.neuron, " of ", neuron.module);
}

// The few that carry nearly all; two where it takes many.
std::size_t main_neurons(const EntryAttribution& entry) {
  const auto needed =
      static_cast<std::size_t>(std::max<std::int64_t>(1, entry.neurons_for_90_percent));
  return std::min({needed, std::size_t{2}, entry.neurons.size()});
}

std::string neuron_list(const std::vector<NeuronPart>& neurons, std::size_t most) {
  std::string text;
  const auto count = std::min(most, neurons.size());
  for (std::size_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : (i + 1 == count ? " and " : ", ");
    text += neuron_name(neurons[i]);
    text += str_cat(" (", number_text(neurons[i].contribution),
                    neurons[i].share ? ", " + share_text(*neurons[i].share) : "", ")");
  }
  return text;
}

// ---- the answers

Fact writers_answer(const ModelReport& report, const EntryAttribution& entry) {
  const bool ffn = std::fabs(entry.ffn_out) >= std::fabs(entry.attn_out);
  std::string text =
      str_cat("In layer ", entry.layer, " (block ", entry.layer + 1, " of ",
              report.scan.model["layers"].dump(), ") the FFN adds ", number_text(entry.ffn_out),
              " to dim ", entry.dim, " and attention ", number_text(entry.attn_out), "; ",
              number_text(entry.resid_pre), " was there before.");
  if (ffn && !entry.neurons.empty()) {
    text +=
        str_cat(" Of the FFN's ", number_text(static_cast<double>(entry.neuron_count)),
                " neurons, ", neuron_list(entry.neurons, main_neurons(entry)), " write",
                main_neurons(entry) == 1 ? "s" : "", " most of it; ",
                entry.neurons_for_90_percent == 1 ? std::string("a single one carries")
                                                  : str_cat(entry.neurons_for_90_percent, " carry"),
                " 90 % of all that is written there.");
  }
  return {"Who writes the massive value?", text};
}

Fact norm_answer(const NormAnalysis& norm) {
  std::string text;
  if (!norm.massive_dims.empty()) {
    const auto& dim = norm.massive_dims.front();
    const bool unread = dim.energy_after < 0.01 * dim.energy_before || dim.energy_after < 1e-3;
    text = str_cat(unread ? "No: " : "Partly: ", "the gain of the norm before the FFN in dim ",
                   dim.dim, " is ", number_text(dim.gain), " (rank ", dim.gain_rank + 1, " of ",
                   norm.gain.size(), " by size). The dim holds ", share_text(dim.energy_before),
                   " of the token's energy before the gain and ", share_text(dim.energy_after),
                   " after it", unread ? ", so the FFN writes it without reading it. " : ". ");
  }
  text +=
      str_cat("What the gain amplifies ", norm.massive_dims.empty() ? "is " : "instead is ",
              "spread over about ", number_text(norm.token.after.participation), " dims, most in ");
  for (std::size_t i = 0; i < std::min<std::size_t>(4, norm.top_dims.size()); ++i) {
    const auto& dim = norm.top_dims[i];
    text += str_cat(i == 0 ? "" : ", ", dim.dim, " (", share_text(dim.energy_after), ", gain ",
                    number_text(dim.gain), ")");
  }
  text += str_cat("; it makes the token ", number_text(norm.token.amplification),
                  " times as long as x_hat");
  if (norm.others) {
    text += str_cat(", the median other token ", number_text(norm.others->amplification),
                    " times: ", number_text(norm.relative_amplification), " times as much");
  }
  return {"Does the FFN read what it writes, and what does the norm amplify?", text + "."};
}

Fact factorial_answer(const FactorialResult& found) {
  const auto& plain = *cell_of(found, 1.0, FfnChange::as_is);
  std::string text =
      str_cat("The largest |x| after layer ", found.layer, ", ", number_text(plain.at_layer), ", ");
  const auto* flat = cell_of(found, 0.0, FfnChange::as_is);
  const auto* held = cell_of(found, 1.0, FfnChange::normalised);
  const auto* both = cell_of(found, 0.0, FfnChange::normalised);
  if (flat != nullptr) {
    text += str_cat("is ", number_text(flat->at_layer), " with the norm's gain flattened, ");
  }
  if (held != nullptr) {
    text += str_cat("is ", number_text(held->at_layer), " with the FFN's product normalised");
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
                    ", a factor of ", number_text(std::exp(one->value)), ").");
  }
  return {"What if the gain is flattened, the product normalised, or both?", text};
}

Fact fall_answer(const FallResult& fall) {
  std::string text;
  for (const auto& stage : fall.stages) {
    const auto& entry = stage.entry;
    text += str_cat(text.empty() ? "" : " ", "Layer ", entry.layer, " takes dim ", entry.dim,
                    " from ", number_text(entry.resid_pre), " to ", number_text(entry.resid_post),
                    ": its FFN adds ", number_text(entry.ffn_out), ", its attention ",
                    number_text(entry.attn_out));
    if (std::fabs(entry.ffn_out) >= std::fabs(entry.attn_out) && !entry.opposing.empty()) {
      text += str_cat(", most by neuron ", neuron_list(entry.opposing, 1));
      if (entry.ffn_norm_gain) {
        text += str_cat("; here the norm's gain in the dim is ", number_text(*entry.ffn_norm_gain));
        const auto& neuron = entry.neurons.front();
        if (!neuron.gate_terms.empty() && neuron.gate != 0) {
          text += str_cat(", and the dim gives ", number_text(neuron.gate_from_dim),
                          " of that "
                          "neuron's gate of ",
                          number_text(neuron.gate));
          if (neuron.gate_from_dim / neuron.gate > 0.3)
            text += ": it reads the value and cancels it";
        }
      }
    }
    text += ".";
  }
  if (text.empty()) {
    text = "No layer behind it halves the token's largest entry.";
  }
  text += str_cat(" After the last layer the token's largest entry is ",
                  number_text(fall.last_largest), ".");
  return {"What takes it away again?", text};
}

Fact vocabulary_answer(const VocabularyResult& found) {
  const double share = static_cast<double>(found.massive) / static_cast<double>(found.tokens);
  std::string text = str_cat(
      "Alone at position 0, ", number_text(static_cast<double>(found.massive)), " of ",
      number_text(static_cast<double>(found.tokens)), " vocabulary entries (", share_text(share),
      ") become massive, ", number_text(static_cast<double>(found.massive_at_dims)),
      " of them in the dims explained.");
  text += share > 0.95   ? " It is the place that decides, and hardly the token."
          : share < 0.05 ? " The first place alone does not make a token massive."
                         : " Place and token both matter.";
  return {"Which tokens can carry it?", text};
}

Fact dose_answer(const DoseResult& dose) {
  std::string text =
      "Of the layers behind, the share of heads that are sinks and the perplexity of "
      "a text: ";
  bool first = true;
  for (const auto& condition : dose.conditions) {
    text += str_cat(first ? "" : "; ", dose_label(dose, condition), ": ",
                    share_text(sinks_behind(condition.text.sinks, dose.layer)), ", ",
                    number_text(condition.text.perplexity));
    first = false;
  }
  text += ".";
  const auto* full = condition_of(dose, "dose", 1.0);
  const auto* mean = condition_of(dose, "mean");
  text += " " + dose_verdict(dose);
  if (full != nullptr && mean != nullptr && mean->text.perplexity < 1.1 * full->text.perplexity) {
    text +=
        " Their mean over prompts does as well as the values themselves: the model needs them "
        "as a constant.";
  }
  return {"Are sinks and perplexity their consequence (dose and response)?", text};
}

std::string percent_range(double low, double high) {
  const auto whole = [](double share) { return number_text(std::round(share * 100)); };
  return whole(low) == whole(high) ? whole(low) + " %" : whole(low) + " to " + whole(high) + " %";
}

struct Run {
  std::size_t begin = 0;
  std::size_t end = 0;  // behind the last
  bool sinks = false;
};

std::vector<Run> runs_of(const std::vector<double>& rates) {
  std::vector<Run> runs;
  for (std::size_t l = 0; l < rates.size(); ++l) {
    const bool sinks = rates[l] >= hardly;
    if (runs.empty() || runs.back().sinks != sinks) runs.push_back({l, l, sinks});
    runs.back().end = l + 1;
  }
  return runs;
}

// The largest entry of the drawn token after each layer.
std::vector<double> token_largest(const PromptStates& states) {
  std::vector<double> result;
  const auto& maxima = states.layers;
  for (std::size_t r = 0; r < maxima.rows.size(); ++r) {
    if (maxima.rows[r].size() != 1) return {};
    double largest = 0;
    for (std::size_t c = 0; c < maxima.columns.size(); ++c) {
      largest = std::max(largest, static_cast<double>(maxima.at(r, c).value));
    }
    result.push_back(largest);
  }
  return result;
}

Fact sinks_answer(const ModelReport& report) {
  const auto& sinks = *report.sinks;
  const auto& rates = sinks.result.summary.layer_rate;
  std::string text = str_cat("Over the whole model ", share_text(sinks.result.summary.sink_rate),
                             " of (sample, layer, head) give the first token more than ",
                             number_text(sinks.result.options.threshold),
                             " of their attention. By layers: ", sink_runs(rates), ".");
  const auto largest = token_largest(*report.scan.states);
  const auto runs = runs_of(rates);
  if (report.scan.result->me_layer && largest.size() == rates.size() &&
      report.scan.states->view.token == 0) {
    // A gap: no sinks, with sinks on both sides. Attention reads what the layer before left.
    for (std::size_t i = 1; i + 1 < runs.size(); ++i) {
      const auto& gap = runs[i];
      if (gap.sinks) continue;
      double low = HUGE_VAL;
      double high = 0;
      for (std::size_t l = gap.begin; l < gap.end; ++l) {
        low = std::min(low, largest[l - 1]);
        high = std::max(high, largest[l - 1]);
      }
      const bool one = gap.end - gap.begin == 1;
      text += str_cat(
          " They vanish in ", one ? "layer " : "layers ", gap.begin,
          one ? std::string() : str_cat(" to ", gap.end - 1),
          " and return behind: what attention reads there of the first token has a largest entry "
          "of only ",
          number_text(low), low == high ? std::string() : " to " + number_text(high), ", against ",
          number_text(largest[gap.begin - 2]), " before and ", number_text(largest[gap.end - 1]),
          " after.");
    }
  }
  return {"Where are the attention sinks?", text};
}

Fact rigidity_answer(const ModelRigidity& rigidity) {
  const auto words = rigidity_paragraphs(rigidity);
  return {"Is the massive token's state rigid?", join(words, " ")};
}

// ---- the numbers

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
      names += (i == 0 ? "" : ", ") + neuron_name(entry->neurons[i]);
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
      facts.push_back({"with the product normalised", number_text(held->at_layer),
                       str_cat("largest |x|; as it is ",
                               number_text(cell_of(*found, 1.0, FfnChange::as_is)->at_layer))});
    }
    if (const auto* one = interaction_of(*found)) {
      facts.push_back({"interaction norm x FFN", number_text(one->value), "logarithm; 0 is none"});
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
          {"sinks behind, entry at 0",
           share_text(sinks_behind(none->text.sinks, result.dose->layer)),
           str_cat("as it is ", share_text(sinks_behind(full->text.sinks, result.dose->layer)))});
      facts.push_back({"perplexity, entry at 0", number_text(none->text.perplexity),
                       "as it is " + number_text(full->text.perplexity)});
    }
  }
}

// Means over the massive layers.
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

}  // namespace

std::string sink_runs(const std::vector<double>& rates) {
  std::string text;
  for (const auto& run : runs_of(rates)) {
    const auto [low, high] =
        std::minmax_element(rates.begin() + static_cast<std::ptrdiff_t>(run.begin),
                            rates.begin() + static_cast<std::ptrdiff_t>(run.end));
    text += str_cat(
        text.empty() ? "" : "; ", run.begin,
        run.end - run.begin > 1 ? str_cat(" to ", run.end - 1) : std::string(), ": ",
        !run.sinks ? std::string(*high > 0 ? "hardly any" : "none") : percent_range(*low, *high));
  }
  return text;
}

std::vector<std::string> sinks_paragraphs(const ModelSinks& sinks) {
  const auto& samples = sinks.samples;
  std::vector<std::string> words{str_cat("Measured on ", counted(std::ssize(samples.ids), "sample"),
                                         " of ", samples.ids.front().size(), " tokens from ",
                                         samples.source == SampleSource::file ? "the text file"
                                         : samples.source == SampleSource::built_in
                                             ? "the built-in text"
                                             : "the ids given",
                                         ". Alpha of a head is the mean attention that later "
                                         "queries give the first token; a head is a "
                                         "sink when it is above ",
                                         number_text(sinks.result.options.threshold), ".")};
  if (sinks.control) {
    const auto& control = *sinks.control;
    words.push_back(str_cat("Control: one token (id ", control.id, ") repeated ", control.length,
                            " times gives ", share_text(control.result.summary.sink_rate),
                            " sinks, against ", share_text(sinks.result.summary.sink_rate), "."));
  }
  return words;
}

std::vector<std::string> rigidity_paragraphs(const ModelRigidity& rigidity) {
  const auto& stream = rigidity.result.sites.front();
  const auto& scan = rigidity.scan;
  const auto state = [&](const StateRigidity& found) {
    const double pairs = plateau_mean(found.mean_prompts, scan);
    const double rank = plateau_mean(found.effective_rank, scan);
    if (std::isnan(pairs)) return std::string("nothing to compare");
    return str_cat("mean cosine between prompts ", fixed(pairs, 4), ", effective rank ",
                   fixed(rank, 2), " of at most ", found.layers.size());
  };
  const auto prompts = rigidity.result.prompts.size();
  const auto distinct = distinct_prefixes(rigidity.result.prompts);
  std::vector<std::string> words{
      str_cat("Residual stream, from layer ", *scan.me_layer, " to layer ",
              scan.last_massive_layer.value_or(*scan.me_layer), ", ",
              counted(std::ssize(rigidity.compared), "prompt"), ": the massive token has ",
              state(stream.token),
              stream.baseline ? "; an ordinary token has " + state(*stream.baseline) : "", ".")};
  if (distinct < prompts) {
    words.push_back(str_cat("Only ", distinct, " of the ", prompts,
                            " prompts begin differently up to that token, and equal beginnings "
                            "give equal states."));
  }
  return words;
}

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
               ? "cosine between prompts; others " +
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
  return answers;
}

}  // namespace onset::app
