// Lines by layer: effective rank and cosines.
#include <algorithm>
#include <cmath>
#include <utility>

#include "onset/base/error.h"
#include "onset/report/figure_data.h"
#include "onset/report/html.h"
#include "onset/report/rigidity_figures.h"
#include "onset/report/rigidity_words.h"

namespace onset {
namespace {

Table rank_table(const RigidityFiguresInput& input) {
  const SiteRigidity& site = input.result.sites.front();
  Table table{.caption = str_cat(site_words(site.site), " of the ", input.token_name, " and the ",
                                 input.baseline_name,
                                 ": cosine with the layer before, between prompts, effective rank"),
              .header = {"layer", "layer before", "prompts", "least", "rank"},
              .numeric = std::vector<bool>(site.baseline ? 9 : 5, true),
              .rows = {}};
  if (site.baseline) {
    table.header.insert(table.header.end(), {"baseline: layer before", "prompts", "least", "rank"});
  }
  const auto cells = [](const StateRigidity& state, std::size_t l) {
    const auto text = [](double value) {
      return std::isnan(value) ? std::string() : four_decimals(value);
    };
    return std::vector<std::string>{text(previous_cosines(state)[l]), text(state.mean_prompts[l]),
                                    text(state.min_prompts[l]),
                                    number_text(state.effective_rank[l])};
  };
  for (std::size_t l = 0; l < layer_count(input); ++l) {
    std::vector<std::string> row{str_cat(l)};
    for (auto& cell : cells(site.token, l)) row.push_back(std::move(cell));
    if (site.baseline) {
      for (auto& cell : cells(*site.baseline, l)) row.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// How far the rank of the massive token rises while it is massive.
std::string stretch_words(const RigidityFiguresInput& input) {
  const Stretch stretch = stretch_of(input);
  if (!stretch.massive) return {};
  const auto& ranks = input.result.sites.front().token.effective_rank;
  double most = 0;
  for (std::size_t l = stretch.begin - 1; l < stretch.end; ++l) most = std::max(most, ranks[l]);
  return str_cat("; from layer ", stretch.begin - 1, " to ", stretch.end - 1, " the ",
                 input.token_name, "'s is ", number_text(most), " at most");
}

LinePlot rank_plot(const RigidityFiguresInput& input, const SiteRigidity& site, const char* title,
                   const auto& values) {
  LinePlot plot{.title = title,
                .series = {{input.token_name, "first", "solid", values(site.token)}}};
  if (site.baseline) {
    plot.series.push_back({input.baseline_name, "second", "solid", values(*site.baseline)});
  }
  return plot;
}

}  // namespace

Figure rank_figure(const RigidityFiguresInput& input) {
  const SiteRigidity& front = input.result.sites.front();
  const std::size_t layer = pictured_layer(input);
  const auto prompts = input.result.prompts.size();
  OrderedJson names = OrderedJson::array();
  OrderedJson plots = OrderedJson::array();
  for (const SiteRigidity& site : input.result.sites) {
    names.push_back(site_words(site.site));
    LinePlot rank = rank_plot(input, site, "effective rank",
                              [](const StateRigidity& state) { return state.effective_rank; });
    rank.levels.push_back({str_cat("all ", prompts, " orthogonal"), static_cast<double>(prompts)});
    rank.range = {0, 1.05 * static_cast<double>(prompts)};
    const LinePlot pairs = rank_plot(input, site, "mean cosine between prompts",
                                     [](const StateRigidity& state) { return state.mean_prompts; });
    const LinePlot previous = rank_plot(input, site, "cosine with the layer before",
                                        [](const StateRigidity& s) { return previous_cosines(s); });
    plots.push_back({line_plot_json(rank), line_plot_json(pairs), line_plot_json(previous)});
  }
  const auto rank = [&](const StateRigidity& state) { return state.effective_rank[layer]; };
  const std::string answer =
      str_cat("After layer ", layer, input.me_layer ? ", the ME layer," : "",
              " the effective rank of the residual streams of ", prompts, " prompts is ",
              beside_baseline(input, front, rank, number_text), stretch_words(input));
  Figure figure{
      .id = "effective-rank",
      .kind = "lines",
      .see = answer + ".",
      .read = str_cat(
          "The effective rank is 1 when the states of all prompts point one way and ", prompts,
          " when they are orthogonal and of one size. Where the line of the ", input.token_name,
          " lies at 1 the state is the same for every prompt; where it leaves 1 the input shows in "
          "it again. The cosine with the layer before compares different bases for keys and values "
          "and says nothing there."),
      .alt = str_cat("Line chart over ", layer_count(input), " layers. ", answer,
                     ". The table below has the numbers."),
      .data = {{"first", std::move(names)},
               {"second",
                {"Effective rank", "Cosine between prompts", "Cosine with the layer before"}},
               {"plots", std::move(plots)}},
      .tables = {rank_table(input)}};
  mark_massive_layers(figure.data, input.me_layer, input.last_massive_layer);
  return figure;
}

}  // namespace onset
