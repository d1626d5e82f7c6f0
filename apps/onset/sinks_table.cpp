// The table of `onset sinks`, at most 80 columns wide.

#include <algorithm>
#include <cmath>

#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "sinks_report.h"

namespace onset::app {
namespace {

// Heads beyond this share a column.
constexpr std::size_t head_columns = 32;

std::string quoted(const std::optional<std::string>& piece, const TextStyle& style) {
  return piece ? " (\"" + fit(printable(*piece, style.utf8), 24, style.utf8) + "\")" : "";
}

std::string samples_text(const SinkSamples& samples) {
  const auto length = samples.ids.front().size();
  const auto count = static_cast<std::int64_t>(samples.ids.size());
  if (samples.source == SampleSource::ids) return counted(count, "sample") + " of ids, as given";
  std::string text =
      str_cat(counted(count, "sample"), " of ", length, " tokens from ",
              samples.source == SampleSource::file ? "the file" : "the built-in text",
              ", which has ", grouped(samples.text_tokens), " tokens");
  if (samples.text_samples > count) {
    text += str_cat(" (", grouped(samples.text_samples), " such samples; --samples 0 takes all)");
  }
  return text;
}

// That of the layers where most queries see the token.
double smallest_uniform(const SinksResult& result) {
  double smallest = HUGE_VAL;
  for (const double alpha : result.uniform_alpha) smallest = std::fmin(smallest, alpha);
  return smallest;
}

std::string header_text(const ModelSinks& sinks, const TextStyle& style) {
  const auto& model = sinks.model;
  const auto row = [](const char* name, const std::string& text) {
    return name + wrap(text, 80, 8) + "\n";
  };
  const std::string bos = sinks.samples.bos ? str_cat(*sinks.samples.bos) : "none";
  const auto& options = sinks.result.options;
  return row("model   ", str_cat(printable(sinks.path, style.utf8), ": ",
                                 model["architecture"].get<std::string>(), ", ",
                                 model["layers"].dump(), " layers, ", model["heads"].dump(),
                                 " heads, BOS ", bos, adapter_words(model["adapter"]))) +
         row("text    ", samples_text(sinks.samples)) +
         row("alpha   ", str_cat("mean attention that later queries give token ", options.key,
                                 quoted(sinks.key_piece, style),
                                 "; spread evenly: ", fixed(smallest_uniform(sinks.result), 3))) +
         row("sink    ",
             str_cat("a head of a sample with alpha above ", shortest(options.threshold)));
}

// "heads 0 to 8: alpha of each, mean over samples, in tenths".
std::string heads_text(std::size_t heads, std::size_t per_column, const TextStyle& style) {
  return str_cat("heads 0 to ", heads - 1, ": alpha ",
                 per_column == 1 ? std::string("of each, mean over samples")
                                 : str_cat("of ", per_column, " a column, mean over samples"),
                 style.utf8 ? ", as a column's height" : ", in tenths");
}

std::string heat_row(const std::vector<double>& alpha, std::size_t per_column,
                     const TextStyle& style) {
  std::string text;
  for (std::size_t begin = 0; begin < alpha.size(); begin += per_column) {
    const std::size_t end = std::min(alpha.size(), begin + per_column);
    double sum = 0;
    for (std::size_t h = begin; h < end; ++h) sum += alpha[h];
    text += heat(sum / static_cast<double>(end - begin), style.utf8);
  }
  return text;
}

std::string layers_text(const SinksResult& result, const TextStyle& style) {
  const auto& summary = result.summary;
  const std::size_t heads = summary.head_alpha.front().size();
  const std::size_t per_column = (heads + head_columns - 1) / head_columns;
  const std::size_t columns = (heads + per_column - 1) / per_column;
  const std::size_t width = std::max<std::size_t>(columns, 5);
  std::string text =
      heads_text(heads, per_column, style) + "\n" +
      wrap(
          str_cat("rate: share of sinks; score: before the softmax, any number; most: the key "
                  "that queries of the second half attend to most, of the first half; max |x|: the "
                  "largest entry of token ",
                  result.options.key, " after the layer"),
          80, 0) +
      "\nlayer  " + pad_right("heads", width) + "    rate  alpha   score  most  max |x|\n";
  const std::size_t bar_width = std::min<std::size_t>(14, 80 - 7 - width - 40);
  for (std::size_t l = 0; l < summary.layer_rate.size(); ++l) {
    const auto& most = result.most_attended[l];
    text += pad_left(str_cat(l), 5) + "  " +
            pad_right(heat_row(summary.head_alpha[l], per_column, style), width) +
            pad_left(std::isnan(summary.layer_rate[l]) ? "-" : percent(summary.layer_rate[l]), 8) +
            pad_left(fixed(summary.layer_alpha[l], 3), 7) +
            pad_left(fixed(summary.layer_score[l], 2), 8) +
            pad_left(most ? str_cat(most->key) : "-", 6) +
            pad_left(compact(result.key_max_abs[l]), 9);
    const auto marks = bar_width < 4 ? "" : bar(summary.layer_rate[l], bar_width, style.utf8);
    text += (marks.empty() ? "" : "  " + marks) + "\n";
  }
  return text + "\n";
}

// "0, 10 to 11", of ascending numbers; the rest left out after a few.
std::string ranges_text(const std::vector<std::size_t>& numbers) {
  constexpr std::size_t most = 6;
  std::string text;
  std::size_t parts = 0;
  for (std::size_t i = 0; i < numbers.size(); ++parts) {
    if (parts == most) return text + ", ..";
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    text += str_cat(i == 0 ? "" : ", ", numbers[i]);
    if (j > i) text += str_cat(" to ", numbers[j]);
    i = j + 1;
  }
  return text;
}

std::string layers_phrase(const std::vector<std::size_t>& layers) {
  return (layers.size() == 1 ? "layer " : "layers ") + ranges_text(layers);
}

// Queries beyond a sliding window, which are in no mean.
std::string window_sentence(const ModelSinks& sinks) {
  std::vector<std::size_t> limited;
  std::vector<std::size_t> blind;
  std::int64_t unseen = 0;
  for (std::size_t l = 0; l < sinks.windows.size(); ++l) {
    std::int64_t here = 0;
    std::int64_t queries = 0;
    for (const auto& sample : sinks.result.samples) {
      here += sample.layers[l].unseen;
      queries += sample.layers[l].queries;
    }
    unseen += here;
    if (here > 0) limited.push_back(l);
    if (queries == 0) blind.push_back(l);
  }
  if (limited.empty()) return "";
  std::string text = str_cat(
      "In ", layers_phrase(limited), " a sliding window hides token ", sinks.result.options.key,
      " from some queries: ", grouped(unseen),
      " of these, over all samples, are left out of the means. Attention spread "
      "evenly gives it ",
      fixed(sinks.result.uniform_alpha[limited.front()], 3), " in layer ", limited.front(), ".");
  if (!blind.empty()) {
    text += " No query sees it in " + layers_phrase(blind) + ", which count nowhere.";
  }
  return text;
}

std::string rate_sentences(const ModelSinks& sinks, const TextStyle& style) {
  const auto& summary = sinks.result.summary;
  const auto& rates = summary.layer_rate;
  if (std::isnan(summary.sink_rate)) return "No query of any layer sees the token.";
  std::string text =
      str_cat(percent(summary.sink_rate), " of all (sample, layer, head) are sinks at token ",
              sinks.result.options.key, quoted(sinks.key_piece, style), "; ",
              percent(summary.sink_rate_incl_self),
              " where that token's own query counts too, as in Gu et al.");
  double highest = 0;
  for (const double rate : rates) highest = std::max(highest, std::isnan(rate) ? 0 : rate);
  std::vector<std::size_t> best;
  std::vector<std::size_t> none;
  for (std::size_t l = 0; l < rates.size(); ++l) {
    if (rates[l] == highest) best.push_back(l);
    if (rates[l] == 0) none.push_back(l);
  }
  if (highest > 0) {
    text += str_cat(" Most in ", layers_phrase(best), " (", percent(highest), ")");
    text += none.empty() ? "." : "; none in " + layers_phrase(none) + ".";
  }
  return text;
}

std::string control_sentence(const SinkControl& control, const TextStyle& style) {
  const auto& summary = control.result.summary;
  return str_cat("Control: token ", control.id, quoted(control.piece, style), " repeated ",
                 control.length, " times gives ", percent(summary.sink_rate), " (",
                 percent(summary.sink_rate_incl_self), " with the token's own query).");
}

}  // namespace

std::string sinks_text(const ModelSinks& sinks, const TextStyle& style) {
  std::vector<std::string> paragraphs{rate_sentences(sinks, style)};
  if (const auto windows = window_sentence(sinks); !windows.empty()) paragraphs.push_back(windows);
  if (sinks.control) paragraphs.push_back(control_sentence(*sinks.control, style));
  const auto text = header_text(sinks, style) + "\n" + layers_text(sinks.result, style) +
                    wrap(join(paragraphs, "\n"), 80, 0) + "\n";
  return sinks.masked ? text + "\n" + sinks_masked_text(sinks) : text;
}

}  // namespace onset::app
