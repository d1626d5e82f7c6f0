// What a mask changes in attention sinks: the table and the words.

#include <algorithm>
#include <cmath>

#include "masked.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "sinks_report.h"

namespace onset::app {
namespace {

// The layer whose rate changes most; nothing where none does.
std::optional<std::size_t> most_changed(const SinkSummary& unmasked, const SinkSummary& masked) {
  std::optional<std::size_t> at;
  double most = 0;
  for (std::size_t l = 0; l < unmasked.layer_alpha.size(); ++l) {
    const double change = std::fabs(masked.layer_alpha[l] - unmasked.layer_alpha[l]);
    if (!(change > most)) continue;
    most = change;
    at = l;
  }
  return at;
}

std::string rates_words(double unmasked, double masked) {
  return str_cat(percent(unmasked), " without the mask, ", percent(masked), " with it");
}

}  // namespace

std::vector<std::string> sinks_masked_paragraphs(const ModelSinks& sinks) {
  const auto& unmasked = sinks.result.summary;
  const auto& masked = sinks.masked->summary;
  std::string text =
      str_cat("Of all (sample, layer, head), sinks at token ", sinks.result.options.key, " are ",
              rates_words(unmasked.sink_rate, masked.sink_rate), ".");
  if (const auto at = most_changed(unmasked, masked)) {
    text += str_cat(" Alpha changes most in layer ", *at, ", from ",
                    fixed(unmasked.layer_alpha[*at], 3), " to ", fixed(masked.layer_alpha[*at], 3),
                    " on average over its heads; its rate is ",
                    rates_words(unmasked.layer_rate[*at], masked.layer_rate[*at]), ".");
  } else {
    text += " Alpha is the same in every layer.";
  }
  std::vector<std::string> paragraphs{text};
  if (sinks.control) {
    paragraphs.push_back("Control, one token repeated: " +
                         rates_words(sinks.control->result.summary.sink_rate,
                                     sinks.control->masked->summary.sink_rate) +
                         ".");
  }
  paragraphs.push_back(masked_caution());
  return paragraphs;
}

std::string sinks_masked_text(const ModelSinks& sinks) {
  const auto& unmasked = sinks.result.summary;
  const auto& masked = sinks.masked->summary;
  std::vector<std::string> largest;
  for (const double value : sinks.masked->key_max_abs) largest.push_back(compact(value));
  return masked_heading(*sinks.mask) +
         wrap(str_cat("layers without and with the mask; rate: share of sinks, alpha: mean over "
                      "samples and heads; |x|: the masked largest entry of token ",
                      sinks.result.options.key, " after the layer"),
              80, 0) +
         "\n" +
         masked_layers_text({{"rate", unmasked.layer_rate, masked.layer_rate},
                             {"alpha", unmasked.layer_alpha, masked.layer_alpha}},
                            largest, "|x|") +
         wrap(join(sinks_masked_paragraphs(sinks), "\n"), 80, 0) + "\n";
}

}  // namespace onset::app
