// What a mask changes in a scan: the table and the words.

#include <algorithm>
#include <cmath>

#include "masked.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "scan_report.h"

namespace onset::app {
namespace {

std::vector<double> largest_of(const PromptScan& prompt) {
  std::vector<double> values;
  for (const auto& layer : prompt.layers) {
    values.push_back(static_cast<double>(std::fabs(layer.largest.value)));
  }
  return values;
}

std::vector<double> medians_of(const PromptScan& prompt) {
  std::vector<double> values;
  for (const auto& layer : prompt.layers) values.push_back(static_cast<double>(layer.median_abs));
  return values;
}

std::string layer_words(const std::optional<std::int64_t>& layer) {
  return layer ? str_cat("layer ", *layer) : std::string("no layer");
}

// "a / b", or "a" where they are the same.
std::string both(const std::string& unmasked, const std::string& masked) {
  return unmasked == masked ? unmasked + " without the mask and with it"
                            : unmasked + " without the mask, " + masked + " with it";
}

std::string dims_words(const ScanResult& result) {
  constexpr std::size_t most = 8;
  std::vector<std::string> dims;
  for (const auto dim : result.massive_dims) {
    if (dims.size() == most) {
      dims.emplace_back("..");
      break;
    }
    dims.push_back(str_cat(dim));
  }
  return dims.empty() ? "none" : join(dims, ", ");
}

std::string stages_words(const PromptScan& prompt) {
  std::vector<std::string> stages;
  for (const auto& stage : prompt.stages) {
    stages.push_back(str_cat(stage.kind == StageKind::rise ? "rise at " : "fall at ", stage.layer));
  }
  return stages.empty() ? "none" : join(stages, ", ");
}

// The layer whose largest entry changes most, as a share of the unmasked one.
std::string largest_change(const PromptScan& unmasked, const PromptScan& masked) {
  const auto before = largest_of(unmasked);
  const auto after = largest_of(masked);
  std::size_t at = 0;
  double most = 0;
  for (std::size_t l = 0; l < before.size(); ++l) {
    const double change = std::fabs(after[l] - before[l]) / std::max(before[l], 1e-30);
    if (change > most) {
      most = change;
      at = l;
    }
  }
  if (most == 0) return "The largest entry is the same after every layer.";
  return str_cat("The largest entry changes most after layer ", at, ", from ", compact(before[at]),
                 " to ", compact(after[at]), " (", after[at] > before[at] ? "+" : "",
                 percent((after[at] - before[at]) / before[at]), ").");
}

}  // namespace

std::vector<std::string> scan_masked_paragraphs(const ModelScan& scan) {
  const auto& unmasked = *scan.result;
  const auto& masked = *scan.masked;
  const auto shown = shown_prompt(unmasked);
  std::string text = str_cat(
      "Massive activations are born in ",
      both(layer_words(unmasked.me_layer), layer_words(masked.me_layer)), "; the last massive is ",
      both(layer_words(unmasked.last_massive_layer), layer_words(masked.last_massive_layer)),
      "; massive dims: ", both(dims_words(unmasked), dims_words(masked)), ". ",
      largest_change(unmasked.prompts[shown], masked.prompts[shown]));
  const auto stages = stages_words(unmasked.prompts[shown]);
  const auto masked_stages = stages_words(masked.prompts[shown]);
  text += stages == masked_stages
              ? " The stages are at the same layers."
              : str_cat(" Stages: ", stages, " without the mask; ", masked_stages, " with it.");
  return {text, masked_caution()};
}

std::string scan_masked_text(const ModelScan& scan) {
  const auto shown = shown_prompt(*scan.result);
  const auto& unmasked = scan.result->prompts[shown];
  const auto& masked = scan.masked->prompts[shown];
  std::vector<std::string> places;
  for (const auto& layer : masked.layers) {
    places.push_back(
        str_cat(layer.largest.token, ", ", layer.largest.dim, layer.massive ? " *" : ""));
  }
  return masked_heading(*scan.mask) +
         wrap(str_cat("layers of prompt ", shown,
                      " without and with the mask; at: token and dim of the masked largest |x|, *: "
                      "a massive entry"),
              80, 0) +
         "\n" +
         masked_layers_text({{"largest |x|", largest_of(unmasked), largest_of(masked), compact},
                             {"median |x|", medians_of(unmasked), medians_of(masked), compact}},
                            places, "at") +
         wrap(join(scan_masked_paragraphs(scan), "\n"), 80, 0) + "\n";
}

}  // namespace onset::app
