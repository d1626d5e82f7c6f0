#include "onset/report/masked_figures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "onset/base/error.h"
#include "onset/report/figure_data.h"
#include "onset/report/html.h"
#include "onset/report/rigidity_words.h"

namespace onset {
namespace {

constexpr int share_decimals = 4;
constexpr std::pair<double, double> share_range{-0.02, 1.04};

using Values = std::vector<double>;

// A quantity of every layer in both runs, as a plot and as columns of the table.
struct Quantity {
  std::string name;
  std::string axis;
  Values unmasked;
  Values masked;
  std::optional<std::pair<double, double>> range = {};
  bool logarithmic = false;
};

Values of_layers(const PromptScan& prompt,
                 const std::function<double(const LayerStatistics&)>& value) {
  Values values;
  for (const auto& layer : prompt.layers) values.push_back(value(layer));
  return values;
}

std::vector<Quantity> quantities(const MaskedFiguresInput& input) {
  const auto largest = [](const LayerStatistics& layer) {
    return static_cast<double>(std::fabs(layer.largest.value));
  };
  const auto median = [](const LayerStatistics& layer) {
    return static_cast<double>(layer.median_abs);
  };
  std::vector<Quantity> result;
  // What a mask changes most comes first.
  if (input.sinks != nullptr) {
    result.push_back({"Sink rate", "share", input.sinks->summary.layer_rate,
                      input.masked_sinks->summary.layer_rate, share_range});
    result.push_back({"Mean alpha", "share", input.sinks->summary.layer_alpha,
                      input.masked_sinks->summary.layer_alpha, share_range});
  }
  result.push_back({"Largest |x|", "largest |x|", of_layers(input.unmasked, largest),
                    of_layers(input.masked, largest), std::nullopt, true});
  result.push_back({"Median |x|", "median |x|", of_layers(input.unmasked, median),
                    of_layers(input.masked, median), std::nullopt, true});
  if (input.rigidity != nullptr && input.rigidity->prompts.size() > 1) {
    for (std::size_t s = 0; s < input.rigidity->sites.size(); ++s) {
      const auto& site = input.rigidity->sites[s];
      result.push_back({str_cat("Cosine between prompts: ", site_words(site.site)),
                        "mean cosine between prompts", site.token.mean_prompts,
                        input.masked_rigidity->sites[s].token.mean_prompts});
    }
  }
  return result;
}

Table layers_table(const std::vector<Quantity>& quantities) {
  Table table{.caption = "By layer, without and with the mask",
              .header = {"layer"},
              .numeric = {true},
              .rows = {}};
  for (const auto& quantity : quantities) {
    table.header.push_back(quantity.name);
    table.header.emplace_back("masked");
    table.numeric.insert(table.numeric.end(), 2, true);
  }
  const auto text = [](double value) {
    return std::isnan(value) ? std::string() : number_text(value);
  };
  for (std::size_t l = 0; l < quantities.front().unmasked.size(); ++l) {
    std::vector<std::string> row{str_cat(l)};
    for (const auto& quantity : quantities) {
      row.push_back(text(quantity.unmasked[l]));
      row.push_back(text(quantity.masked[l]));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// "The sink rate differs most in layer 12: 0.863 without the mask, 0.350 with it". `relative`: by
// its size.
std::string most_changed(const std::string& what, const Values& unmasked, const Values& masked,
                         bool relative) {
  std::size_t at = 0;
  double most = 0;
  for (std::size_t l = 0; l < unmasked.size(); ++l) {
    const double scale = relative ? std::max(std::fabs(unmasked[l]), 1e-30) : 1.0;
    const double change = std::fabs(masked[l] - unmasked[l]) / scale;
    if (!(change > most)) continue;
    most = change;
    at = l;
  }
  if (most == 0) return str_cat("The ", what, " is the same in every layer");
  return str_cat("The ", what, " differs most", relative ? ", for its size," : "", " in layer ", at,
                 ": ", number_text(unmasked[at]), " without the mask, ", number_text(masked[at]),
                 " with it");
}

std::string changes_words(const std::vector<Quantity>& all) {
  std::string words;
  for (const auto& quantity : all) {
    const bool sinks = quantity.name == "Sink rate";
    if (!sinks && quantity.name != "Largest |x|") continue;
    words += (words.empty() ? "" : ". ") + most_changed(sinks ? "sink rate" : "largest entry",
                                                        quantity.unmasked, quantity.masked, !sinks);
  }
  return words;
}

OrderedJson difference_of(const std::vector<Values>& unmasked, const std::vector<Values>& masked) {
  std::vector<Values> difference = masked;
  for (std::size_t l = 0; l < masked.size(); ++l) {
    for (std::size_t h = 0; h < masked[l].size(); ++h) difference[l][h] -= unmasked[l][h];
  }
  return rounded(difference, share_decimals);
}

std::string begins_words(const MaskedFiguresInput& input) {
  return input.from_layer == 0 ? std::string(" The mask is in all layers from the first on.")
                               : str_cat(" The mask begins in layer ", input.from_layer,
                                         ": before it both runs are the same.");
}

}  // namespace

Figure masked_layers_figure(const MaskedFiguresInput& input) {
  const auto all = quantities(input);
  OrderedJson names = OrderedJson::array();
  OrderedJson plots = OrderedJson::array();
  for (const auto& quantity : all) {
    const LinePlot plot{.title = quantity.axis,
                        .series = {{"unmasked", "first", "solid", quantity.unmasked},
                                   {"masked", "second", "dashdot", quantity.masked}},
                        .range = quantity.range,
                        .logarithmic = quantity.logarithmic};
    names.push_back(quantity.name);
    plots.push_back(OrderedJson::array({line_plot_json(plot)}));
  }
  const std::string answer = changes_words(all);
  Figure figure{
      .id = "masked-layers",
      .kind = "lines",
      .see = answer + "." + begins_words(input),
      .read =
          "The solid line is the model as it is, the broken line the same inputs under the mask; "
          "the buttons choose what is compared. Where one line hides the other there is no "
          "difference to see; the table has the numbers.",
      .alt = str_cat("Line chart over ", all.front().unmasked.size(), " layers. ", answer, "."),
      .data = {{"first", std::move(names)},
               {"second", OrderedJson::array()},
               {"plots", std::move(plots)}},
      .tables = {layers_table(all)}};
  mark_massive_layers(figure.data, input.unmasked.me_layer, input.unmasked.last_massive_layer);
  return figure;
}

Figure masked_heads_figure(const MaskedFiguresInput& input) {
  const auto& unmasked = input.sinks->summary;
  const auto& masked = input.masked_sinks->summary;
  const auto view = [](const char* name, const char* unit, bool is_signed, OrderedJson values) {
    return OrderedJson{
        {"name", name}, {"unit", unit}, {"signed", is_signed}, {"values", std::move(values)}};
  };
  const std::string answer = str_cat("Over all layers, heads and samples the sink rate is ",
                                     number_text(unmasked.sink_rate), " without the mask and ",
                                     number_text(masked.sink_rate), " with it");
  Figure figure{
      .id = "masked-heads",
      .kind = "heads",
      .see = answer + "." + begins_words(input),
      .read =
          "Each cell is a head. Its colour is what the mask adds to the mean attention that later "
          "queries give the first token, or takes from it; the buttons show that attention without "
          "the mask and with it.",
      .alt = answer + ".",
      .data = {{"views",
                {view("Masked less unmasked", "difference", true,
                      difference_of(unmasked.head_alpha, masked.head_alpha)),
                 view("Unmasked", "alpha", false, rounded(unmasked.head_alpha, share_decimals)),
                 view("Masked", "alpha", false, rounded(masked.head_alpha, share_decimals))}},
               {"threshold", input.sinks->options.threshold},
               {"windows", input.windows}}};
  mark_massive_layers(figure.data, input.unmasked.me_layer, input.unmasked.last_massive_layer);
  return figure;
}

Figure masked_cosines_figure(const MaskedFiguresInput& input) {
  OrderedJson sites = OrderedJson::array();
  for (std::size_t s = 0; s < input.rigidity->sites.size(); ++s) {
    const auto& site = input.rigidity->sites[s];
    const auto panel = [](const char* title, const StateRigidity& state) {
      return OrderedJson{{"title", title},
                         {"frames", OrderedJson::array({triangle(state.mean_layers)})}};
    };
    sites.push_back({{"site", site_kind_name(site.site)},
                     {"name", site_words(site.site)},
                     {"panels",
                      {panel("unmasked", site.token),
                       panel("masked", input.masked_rigidity->sites[s].token)}}});
  }
  const auto& stream = input.rigidity->sites.front().token;
  const auto& masked = input.masked_rigidity->sites.front().token;
  const std::string answer =
      str_cat("From layer to layer the massive token's residual stream has a mean cosine of ",
              four_decimals(mean_of_finite(previous_cosines(stream))), " without the mask and ",
              four_decimals(mean_of_finite(previous_cosines(masked))), " with it");
  Figure figure{.id = "masked-cosines",
                .kind = "cosines",
                .see = answer + "." + begins_words(input),
                .read =
                    "Each cell compares the massive token's state at two layers, mean over "
                    "prompts: left without the mask, right with it. The mask acts on the attention "
                    "input, so look there first; the residual stream it changes only through what "
                    "attention writes.",
                .alt = answer + ".",
                .data = {{"index", "layer"},
                         {"sites", std::move(sites)},
                         {"frames", OrderedJson::array({0})},
                         {"chosen", 0}}};
  mark_massive_layers(figure.data, input.unmasked.me_layer, input.unmasked.last_massive_layer);
  return figure;
}

std::vector<Figure> masked_figures(const MaskedFiguresInput& input) {
  std::vector<Figure> figures{masked_layers_figure(input)};
  if (input.sinks != nullptr) figures.push_back(masked_heads_figure(input));
  if (input.rigidity != nullptr) figures.push_back(masked_cosines_figure(input));
  return figures;
}

}  // namespace onset
