// What a report says of sinks and of rigidity.

#include "report_words.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/explain_figures.h"
#include "onset/report/html.h"
#include "report_parts.h"
#include "text.h"

namespace onset::app {
namespace {

// Layers in which fewer of the heads are sinks count as having none.
constexpr double hardly = 0.02;

std::string percent_range(double low, double high) {
  const auto whole = [](double share) { return number_text(std::round(share * 100)); };
  return whole(low) == whole(high) ? whole(low) + " %" : whole(low) + " to " + whole(high) + " %";
}

struct Run {
  std::size_t begin = 0;
  std::size_t end = 0;  // after the last
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

}  // namespace

Fact sinks_answer(const ModelReport& report) {
  const auto& sinks = *report.sinks;
  const auto& rates = sinks.result.summary.layer_rate;
  std::string text = str_cat("Over the whole model ", share_text(sinks.result.summary.sink_rate),
                             " of (sample, layer, head) give the first token more than ",
                             number_text(sinks.result.options.threshold),
                             " of their attention. By layers: ", sink_runs(rates), ".");
  const auto largest = row_maxima(report.scan.states->layers);
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
        low = std::min(low, static_cast<double>(largest[l - 1]));
        high = std::max(high, static_cast<double>(largest[l - 1]));
      }
      const bool one = gap.end - gap.begin == 1;
      text +=
          str_cat(" They vanish in ", one ? "layer " : "layers ", gap.begin,
                  one ? std::string() : str_cat(" to ", gap.end - 1),
                  " and return after: the first token's state that attention reads there has, in "
                  "the prompt "
                  "drawn, a largest entry of only ",
                  number_text(low), low == high ? std::string() : " to " + number_text(high),
                  ", against ", number_text(largest[gap.begin - 2]), " in the layer before and ",
                  number_text(largest[gap.end - 1]), " in the layer after.");
    }
  }
  return {"Where are the attention sinks?", text};
}

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
  const auto first = *scan.me_layer;
  const auto last = scan.last_massive_layer.value_or(first);
  const auto prompts = rigidity.result.prompts.size();
  const auto state = [&](const StateRigidity& found) {
    std::vector<std::string> words;
    if (last > first) {
      const double across =
          found.mean_layers[static_cast<std::size_t>(first)][static_cast<std::size_t>(last)];
      words.push_back(str_cat("a cosine of ", fixed(across, 4), " between these two layers"));
    }
    const double pairs = plateau_mean(found.mean_prompts, scan);
    if (!std::isnan(pairs)) {
      words.push_back(str_cat(
          "a mean cosine of ", fixed(pairs, 4), " between prompts, and an effective rank of ",
          fixed(plateau_mean(found.effective_rank, scan), 2), " of at most ", found.layers.size()));
    }
    return words.empty() ? std::string("nothing to be compared with") : join(words, ", ");
  };
  std::vector<std::string> words{
      str_cat("Residual stream, ",
              last > first ? str_cat("from layer ", first, " to layer ", last)
                           : str_cat("after layer ", first),
              ", ", counted(std::ssize(rigidity.compared), "prompt"), ": the massive token has ",
              state(stream.token),
              stream.baseline ? "; an ordinary token has " + state(*stream.baseline) : "",
              prompts == 1 ? ". Prompts are compared where there are several." : ".")};
  const auto distinct = distinct_prefixes(rigidity.result.prompts);
  if (distinct < prompts) {
    words.push_back(str_cat("Only ", distinct, " of the ", prompts,
                            " prompts begin differently up to that token, and equal beginnings "
                            "give equal states."));
  }
  return words;
}

}  // namespace onset::app
