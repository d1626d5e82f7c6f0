#include "onset/report/comparison_figures.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/report/html.h"

namespace onset {
namespace {

OrderedJson optional_layer(const std::optional<std::int64_t>& layer) {
  return layer ? OrderedJson(*layer) : OrderedJson(nullptr);
}

std::string see_words(const std::vector<ComparedModel>& models) {
  std::size_t with = 0;
  double low = 1;
  double high = 0;
  for (const auto& model : models) {
    if (!model.scan.me_layer) continue;
    const auto layers = static_cast<double>(model.scan.prompts[model.prompt].layers.size());
    const double depth = static_cast<double>(*model.scan.me_layer + 1) / layers;
    ++with;
    low = std::min(low, depth);
    high = std::max(high, depth);
  }
  std::string text = str_cat(with, " of ", models.size(), " models have an ME layer");
  if (with > 0) {
    const auto from = number_text(std::round(low * 100));
    const auto to = number_text(std::round(high * 100));
    text +=
        str_cat(", after ", from, from == to ? std::string() : " to " + to, " % of their blocks");
  }
  return text + ".";
}

}  // namespace

Figure comparison_figure(const std::vector<ComparedModel>& models) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& model : models) {
    const auto& prompt = model.scan.prompts[model.prompt];
    OrderedJson largest = OrderedJson::array();
    for (const auto& layer : prompt.layers) {
      largest.push_back(picture_number(std::fabs(layer.largest.value)));
    }
    rows.push_back({{"name", model.name},
                    {"layers", prompt.layers.size()},
                    {"me_layer", optional_layer(model.scan.me_layer)},
                    {"last_massive_layer", optional_layer(model.scan.last_massive_layer)},
                    {"largest", std::move(largest)}});
  }
  const auto see = see_words(models);
  return {.id = "depth",
          .kind = "depth",
          .see = see,
          .read =
              "A row is a model from its first block (0) to its last (1). The dot is the ME "
              "layer, the line reaches to the last massive layer; a row without a dot has no "
              "ME layer. \"Magnitudes\" draws the largest |x| after each block over the same "
              "depth: one jump that stays is one ME layer.",
          .alt = "Dot plot of the relative depth of each model's ME layer. " + see,
          .data = {{"models", std::move(rows)}}};
}

}  // namespace onset
