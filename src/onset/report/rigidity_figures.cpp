#include "onset/report/rigidity_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "onset/base/error.h"
#include "onset/report/figure_data.h"
#include "onset/report/html.h"
#include "onset/report/rigidity_words.h"

namespace onset {
namespace {

// Numbers of all prompt x prompt matrices together: about 1 MB. Beyond it layers are left out.
constexpr std::size_t most_prompt_cosines = 130'000;
constexpr std::size_t prompt_letters = 60;

double mean_previous(const StateRigidity& state, const Stretch& stretch) {
  const auto cosines = previous_cosines(state);
  if (stretch.begin >= stretch.end) return std::numeric_limits<double>::quiet_NaN();
  return mean_of_finite(std::span(cosines).subspan(stretch.begin, stretch.end - stretch.begin));
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

}  // namespace

Figure layer_cosine_figure(const RigidityFiguresInput& input) {
  const SiteRigidity& site = input.result.sites.front();
  const Stretch stretch = stretch_of(input);
  const auto previous = [&](const StateRigidity& state) { return mean_previous(state, stretch); };
  const std::string where = stretch.massive
                                ? str_cat("From layer ", stretch.begin - 1, " to ", stretch.end - 1)
                                : std::string("Over all layers");
  const std::string answer =
      str_cat(where, " the residual stream has a cosine with the layer before of ",
              beside_baseline(input, site, previous, four_decimals), ", on average");
  Figure figure{
      .id = "layer-cosines",
      .kind = "cosines",
      .see = answer + ".",
      .read =
          "Each cell compares one token's state at two layers, mean over prompts: 1 means one "
          "direction. A block of full colour is a stretch of layers in which the direction "
          "stays; its edges are where a layer turns it. \"1 - cosine, logarithmic\" tells apart "
          "what is close to 1. Keys and values of different layers are made by different "
          "matrices: their cosines between layers compare different bases and are mostly small for "
          "any "
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
  const std::string answer = str_cat("After layer ", layer, input.me_layer ? ", the ME layer," : "",
                                     " the residual streams of two prompts have a cosine of ",
                                     beside_baseline(input, site, pairs, four_decimals),
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
  if (different == 1) {
    figure.see +=
        " But all prompts are alike up to that token, so its states are equal by causality, which "
        "says nothing about rigidity.";
  } else if (different < prompts) {
    figure.see += str_cat(" But only ", different, " of ", prompts,
                          " prompts differ up to that token; states after equal beginnings are "
                          "equal by causality, which says nothing about rigidity.");
  }
  if (shown.size() < layer_count(input)) {
    figure.read += str_cat(" The slider has ", shown.size(), " of ", layer_count(input),
                           " layers, so that the page stays small; --json has all.");
  }
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
