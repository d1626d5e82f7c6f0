#include "onset/report/rigidity_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "onset/base/error.h"
#include "onset/report/figure_data.h"
#include "onset/report/html.h"

namespace onset {
namespace {

// Numbers of all prompt x prompt matrices together: about 1 MB. Beyond it layers are left out.
constexpr std::size_t most_prompt_cosines = 130'000;
constexpr std::size_t prompt_letters = 60;

std::string site_words(SiteKind site) {
  switch (site) {
    case SiteKind::resid_post:
      return "Residual stream";
    case SiteKind::attn_norm:
      return "Attention input";
    case SiteKind::k_pre:
      return "Keys";
    case SiteKind::v:
      return "Values";
    default:
      return std::string(site_kind_name(site));
  }
}

std::size_t layer_count(const RigidityFiguresInput& input) {
  return input.result.sites.front().token.prompts.size();
}

std::size_t pictured_layer(const RigidityFiguresInput& input) {
  return static_cast<std::size_t>(input.me_layer.value_or(0));
}

// The layers that are compared with the one before: within the massive ones, else all.
struct Stretch {
  std::size_t begin = 1;
  std::size_t end = 1;
  bool massive = false;
};

Stretch stretch_of(const RigidityFiguresInput& input) {
  const std::size_t layers = layer_count(input);
  Stretch result{.begin = 1, .end = layers};
  if (!input.me_layer || !input.last_massive_layer) return result;
  const auto begin = static_cast<std::size_t>(*input.me_layer) + 1;
  const auto end = std::min(static_cast<std::size_t>(*input.last_massive_layer) + 1, layers);
  if (begin < end) result = {.begin = begin, .end = end, .massive = true};
  return result;
}

std::vector<double> previous_cosines(const StateRigidity& state) {
  std::vector<double> cosines;
  for (std::size_t l = 0; l < state.mean_layers.size(); ++l) {
    cosines.push_back(l > 0 ? state.mean_layers[l][l - 1]
                            : std::numeric_limits<double>::quiet_NaN());
  }
  return cosines;
}

double mean_previous(const StateRigidity& state, const Stretch& stretch) {
  const auto cosines = previous_cosines(state);
  if (stretch.begin >= stretch.end) return std::numeric_limits<double>::quiet_NaN();
  return mean_of_finite(std::span(cosines).subspan(stretch.begin, stretch.end - stretch.begin));
}

// Cosines near 1 want more digits than number_text has.
std::string cosine_text(double value) {
  if (std::isnan(value)) return "undefined";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4f", value);
  return text.data();
}

std::string beside_baseline(const RigidityFiguresInput& input, double token, double baseline,
                            const auto& text) {
  std::string words = str_cat(text(token), " for the ", input.token_name);
  if (!std::isnan(baseline)) {
    words += str_cat(", ", text(baseline), " for the ", input.baseline_name);
  }
  return words;
}

double of_baseline(const SiteRigidity& site, const auto& value) {
  return site.baseline ? value(*site.baseline) : std::numeric_limits<double>::quiet_NaN();
}

// The positions of the prompts that have a baseline; those of the token have all.
OrderedJson baseline_prompts(const RigidityResult& result) {
  OrderedJson numbers = OrderedJson::array();
  for (std::size_t p = 0; p < result.prompts.size(); ++p) {
    if (result.prompts[p].baseline) numbers.push_back(p);
  }
  return numbers;
}

// Sites with their panels: `frames` are the matrices that the slider goes through.
OrderedJson sites_json(const RigidityFiguresInput& input, bool between_prompts,
                       const auto& frames_of) {
  OrderedJson sites = OrderedJson::array();
  for (const SiteRigidity& site : input.result.sites) {
    OrderedJson panels = OrderedJson::array();
    panels.push_back({{"title", input.token_name}, {"frames", frames_of(site.token)}});
    if (site.baseline) {
      panels.push_back({{"title", input.baseline_name}, {"frames", frames_of(*site.baseline)}});
      if (between_prompts) panels.back()["prompts"] = baseline_prompts(input.result);
    }
    sites.push_back({{"site", site_kind_name(site.site)},
                     {"name", site_words(site.site)},
                     {"panels", std::move(panels)}});
  }
  return sites;
}

// All layers, or so many that the page stays small: the pictured one and others evenly.
std::vector<std::size_t> shown_layers(const RigidityFiguresInput& input) {
  const std::size_t layers = layer_count(input);
  const std::size_t prompts = input.result.prompts.size();
  const std::size_t numbers = input.result.sites.size() * prompts * (prompts + 1);  // both tokens
  const std::size_t most = std::clamp<std::size_t>(most_prompt_cosines / numbers, 1, layers);
  std::vector<std::size_t> shown{pictured_layer(input)};
  for (std::size_t i = 0; i + 1 < most; ++i) shown.push_back(i * (layers - 1) / (most - 1));
  if (most == layers) {
    shown.clear();
    for (std::size_t l = 0; l < layers; ++l) shown.push_back(l);
  }
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  return shown;
}

std::string rank_table(const RigidityFiguresInput& input) {
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
      return std::isnan(value) ? std::string() : cosine_text(value);
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
  return table_html(table);
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

Figure layer_cosine_figure(const RigidityFiguresInput& input) {
  const SiteRigidity& site = input.result.sites.front();
  const Stretch stretch = stretch_of(input);
  const auto previous = [&](const StateRigidity& state) { return mean_previous(state, stretch); };
  const std::string where = stretch.massive
                                ? str_cat("From layer ", stretch.begin - 1, " to ", stretch.end - 1)
                                : std::string("Over all layers");
  const std::string answer = str_cat(
      where, " the residual stream has a cosine with the layer before of ",
      beside_baseline(input, previous(site.token), of_baseline(site, previous), cosine_text),
      ", on average");
  Figure figure{
      .id = "layer-cosines",
      .kind = "cosines",
      .see = answer + ".",
      .read =
          "Each cell compares one token's state at two layers, mean over prompts: 1 means one "
          "direction. A block of full colour is a stretch of layers in which the direction "
          "stays; its edges are where a layer turns it. \"1 - cosine, logarithmic\" tells apart "
          "what is close to 1. Keys and values of different layers are made by different "
          "matrices: their cosines between layers compare different bases and lie near 0 for any "
          "token, so that nothing follows from them; compare those between prompts. A cosine near "
          "1 in the residual stream can be one large entry alone; the attention input weighs "
          "entries as attention gets them.",
      .alt = str_cat("Heat maps of cosines between ", layer_count(input), " layers. ", answer, "."),
      .data = {{"index", "layer"},
               {"sites", sites_json(input, false,
                                    [](const StateRigidity& state) {
                                      return OrderedJson::array({triangle(state.mean_layers)});
                                    })},
               {"frames", OrderedJson::array({0})},
               {"chosen", 0}}};
  mark_massive_layers(figure.data, input.me_layer, input.last_massive_layer);
  if (input.me_layer) {
    figure.read +=
        " The dotted square encloses the massive layers; what attention reads follows one layer "
        "later.";
  }
  return figure;
}

Figure prompt_cosine_figure(const RigidityFiguresInput& input) {
  const SiteRigidity& site = input.result.sites.front();
  const std::size_t layer = pictured_layer(input);
  const auto shown = shown_layers(input);
  const auto prompts = input.result.prompts.size();
  const auto pairs = [&](const StateRigidity& state) { return state.mean_prompts[layer]; };
  const std::string answer =
      str_cat("After layer ", layer, input.me_layer ? ", the ME layer," : "",
              " the residual streams of two prompts have a cosine of ",
              beside_baseline(input, pairs(site.token), of_baseline(site, pairs), cosine_text),
              ", on average over ", prompts, " prompts");
  OrderedJson names = OrderedJson::array();
  for (const auto& prompt : input.prompts) {
    names.push_back(shortened(valid_utf8(prompt), prompt_letters));
  }
  const auto frames = [&](const StateRigidity& state) {
    OrderedJson result = OrderedJson::array();
    for (const std::size_t l : shown) result.push_back(triangle(state.prompts[l]));
    return result;
  };
  const auto chosen = std::find(shown.begin(), shown.end(), layer) - shown.begin();
  Figure figure{
      .id = "prompt-cosines",
      .kind = "cosines",
      .see = answer + ".",
      .read =
          "Each cell compares the states of two prompts at one layer: full colour everywhere means "
          "that the state does not depend on the input. Keys and values can be compared here, "
          "since both come from the same layer's matrices.",
      .alt = str_cat("Heat maps of cosines between ", prompts, " prompts. ", answer, "."),
      .data = {{"index", "prompt"},
               {"sites", sites_json(input, true, frames)},
               {"frames", shown},
               {"chosen", chosen},
               {"prompts", std::move(names)}}};
  mark_massive_layers(figure.data, input.me_layer, input.last_massive_layer);
  const auto different = distinct_prefixes(input.result.prompts);
  if (different < prompts) {
    figure.see +=
        str_cat(" But only ", different, different == 1 ? " prompt differs" : " prompts differ",
                " up to that token: the others' states are equal by causality, which "
                "says nothing about rigidity.");
  }
  if (shown.size() < layer_count(input)) {
    figure.read += str_cat(" The slider has ", shown.size(), " of ", layer_count(input),
                           " layers, so that the page stays small; --json has all.");
  }
  return figure;
}

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
              beside_baseline(input, rank(front.token), of_baseline(front, rank), number_text));
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
      .details = rank_table(input)};
  mark_massive_layers(figure.data, input.me_layer, input.last_massive_layer);
  return figure;
}

std::vector<Figure> rigidity_figures(const RigidityFiguresInput& input) {
  std::vector<Figure> figures;
  if (input.result.sites.empty()) return figures;
  figures.push_back(layer_cosine_figure(input));
  if (input.result.prompts.size() > 1) {
    figures.push_back(prompt_cosine_figure(input));
    figures.push_back(rank_figure(input));
  }
  return figures;
}

}  // namespace onset
