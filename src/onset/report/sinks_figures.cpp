#include "onset/report/sinks_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "onset/base/error.h"
#include "onset/report/figure_data.h"
#include "onset/report/html.h"

namespace onset {
namespace {

constexpr int share_decimals = 4;
constexpr int score_decimals = 3;
constexpr double quiet_rate = 0.05;  // below it the caption says that a layer has no sinks

std::string key_words(const SinksFiguresInput& input) {
  const auto key = input.result.options.key;
  return key == 0 ? "the first token" : str_cat("token ", key);
}

std::string share_text(double value) { return std::isnan(value) ? "" : number_text(value); }

struct Head {
  std::size_t layer = 0;
  std::size_t head = 0;
  double alpha = std::numeric_limits<double>::quiet_NaN();
};

Head strongest_of(const SinkSummary& summary, std::size_t layer) {
  Head best{.layer = layer};
  const auto& alphas = summary.head_alpha[layer];
  for (std::size_t h = 0; h < alphas.size(); ++h) {
    if (!(alphas[h] <= best.alpha) && !std::isnan(alphas[h])) best = {layer, h, alphas[h]};
  }
  return best;
}

Head strongest(const SinkSummary& summary) {
  Head best;
  for (std::size_t l = 0; l < summary.head_alpha.size(); ++l) {
    const Head head = strongest_of(summary, l);
    if (!(head.alpha <= best.alpha) && !std::isnan(head.alpha)) best = head;
  }
  return best;
}

// Mean rates of the layers whose attention reads a massive state, one after the layer that left it,
// and of all others.
struct Compared {
  std::int64_t begin = 0;
  std::int64_t last = 0;
  double massive = 0;
  double others = 0;
};

std::optional<Compared> compared(const SinksFiguresInput& input) {
  const auto& rates = input.result.summary.layer_rate;
  const auto layers = static_cast<std::int64_t>(rates.size());
  if (!input.me_layer || *input.me_layer + 1 >= layers) return std::nullopt;
  Compared result{.begin = *input.me_layer + 1};
  result.last =
      std::clamp(input.last_massive_layer.value_or(*input.me_layer) + 1, result.begin, layers - 1);
  std::vector<double> massive;
  std::vector<double> others;
  for (std::int64_t l = 0; l < layers; ++l) {
    const bool reads = l >= result.begin && l <= result.last;
    (reads ? massive : others).push_back(rates[static_cast<std::size_t>(l)]);
  }
  result.massive = mean_of_finite(massive);
  result.others = mean_of_finite(others);
  return result;
}

std::string comparison_words(const SinksFiguresInput& input) {
  const auto found = compared(input);
  if (!found || std::isnan(found->massive)) return {};
  std::string words =
      found->begin == found->last
          ? str_cat(" In layer ", found->begin, ", whose attention reads the massive state")
          : str_cat(" In layers ", found->begin, " to ", found->last,
                    ", whose attention reads a massive state");
  words += str_cat(", the rate is ", number_text(found->massive));
  if (!std::isnan(found->others)) words += str_cat("; in the others ", number_text(found->others));
  return words + ".";
}

std::string hidden_words(const SinksFiguresInput& input) {
  const auto& rates = input.result.summary.layer_rate;
  const auto hidden =
      std::count_if(rates.begin(), rates.end(), [](double rate) { return std::isnan(rate); });
  if (hidden == 0) return {};
  return str_cat(" In ", hidden, " of ", rates.size(), " layers no query sees ", key_words(input),
                 ", because of their window: they are grey in the heat map, gaps in the lines.");
}

// Layers without sinks, as ranges: "0 to 1, 10 to 11".
std::string quiet_words(const SinksFiguresInput& input) {
  const auto& rates = input.result.summary.layer_rate;
  std::string ranges;
  bool all = true;
  for (std::size_t l = 0; l < rates.size(); ++l) {
    const auto quiet = [&](std::size_t at) { return rates[at] < quiet_rate; };
    all = all && (quiet(l) || std::isnan(rates[l]));
    if (!quiet(l)) continue;
    const std::size_t begin = l;
    while (l + 1 < rates.size() && quiet(l + 1)) ++l;
    ranges += str_cat(ranges.empty() ? "" : ", ", begin);
    if (l > begin) ranges += str_cat(" to ", l);
  }
  if (ranges.empty()) return {};
  const std::string limit = str_cat("(a rate below ", number_text(quiet_rate), ")");
  return all ? str_cat(" Hardly any head of any layer is a sink ", limit, ".")
             : str_cat(" Hardly any head is a sink ", limit, " in layers ", ranges, ".");
}

Table layer_table(const SinksFiguresInput& input) {
  const SinkSummary& summary = input.result.summary;
  Table table{.caption = str_cat("By layer: attention to ", key_words(input),
                                 ", over samples and heads. Scores are logits, not shares."),
              .header = {"layer", "sink rate", "mean alpha", "even share", "strongest head",
                         "its alpha", "mean score (logit)"},
              .numeric = {true, true, true, true, true, true, true},
              .rows = {}};
  const bool windows =
      std::any_of(input.windows.begin(), input.windows.end(), [](auto w) { return w > 0; });
  const auto add_column = [&](const char* name) {
    table.header.emplace_back(name);
    table.numeric.push_back(true);
  };
  if (windows) add_column("window");
  if (input.control != nullptr) add_column("rate of the control");
  add_column("most attended key");
  for (std::size_t l = 0; l < summary.layer_rate.size(); ++l) {
    const Head head = strongest_of(summary, l);
    const auto& most = input.result.most_attended[l];
    std::vector<std::string> row{str_cat(l),
                                 share_text(summary.layer_rate[l]),
                                 share_text(summary.layer_alpha[l]),
                                 share_text(input.result.uniform_alpha[l]),
                                 std::isnan(head.alpha) ? std::string() : str_cat(head.head),
                                 share_text(head.alpha),
                                 share_text(summary.layer_score[l])};
    if (windows) row.push_back(input.windows[l] > 0 ? str_cat(input.windows[l]) : "");
    if (input.control != nullptr) {
      row.push_back(share_text(input.control->summary.layer_rate[l]));
    }
    row.push_back(most ? str_cat(most->key, " (", number_text(most->mass), ")") : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

OrderedJson view(const char* name, const char* unit, bool is_signed,
                 const std::vector<std::vector<double>>& values) {
  return {{"name", name},
          {"unit", unit},
          {"signed", is_signed},
          {"values", rounded(values, is_signed ? score_decimals : share_decimals)}};
}

// Both ends of shares are always in the picture.
constexpr std::pair<double, double> share_range{-0.02, 1.04};

}  // namespace

Figure sink_heads_figure(const SinksFiguresInput& input) {
  const SinkSummary& summary = input.result.summary;
  const Head best = strongest(summary);
  const auto heads = summary.head_alpha.empty() ? 0 : summary.head_alpha.front().size();
  const std::string limit = number_text(input.result.options.threshold);
  std::int64_t above = 0;
  std::int64_t counted = 0;
  for (const auto& alphas : summary.head_alpha) {
    for (const double alpha : alphas) {
      counted += std::isnan(alpha) ? 0 : 1;
      above += alpha > input.result.options.threshold ? 1 : 0;
    }
  }
  std::string answer = str_cat(above, " of ", counted, " heads give ", key_words(input),
                               " more than ", limit, " of their attention on average over ",
                               summary.samples, summary.samples == 1 ? " sample" : " samples");
  if (!std::isnan(best.alpha)) {
    answer += str_cat("; the largest alpha is ", four_decimals(best.alpha), ", of head ", best.head,
                      " in layer ", best.layer);
  }
  OrderedJson windows = OrderedJson::array();
  for (const std::int64_t window : input.windows) windows.push_back(window);
  Figure figure{
      .id = "sink-heads",
      .kind = "heads",
      .see = str_cat(answer, ".", hidden_words(input)),
      .read = str_cat(
          "Each cell is a head, its colour alpha: the mean attention that the queries after it "
          "give ",
          key_words(input), ", 0 to 1. A head is called a sink above ", limit,
          "; \"Share of samples\" shows in how many samples it is. \"Scores\" are the same column "
          "before the softmax, after scale and soft cap: logits, any number, not comparable with "
          "shares. A row has no meaning across layers: head 3 of one layer has nothing to do with "
          "head 3 of the next."),
      .alt = str_cat("Heat map over ", summary.head_alpha.size(), " layers and ", heads, " heads. ",
                     answer, "."),
      .data = {{"views",
                {view("Attention (alpha)", "alpha", false, summary.head_alpha),
                 view("Share of samples", "share", false, summary.head_rate),
                 view("Scores (logits)", "logit", true, summary.head_score)}},
               {"threshold", input.result.options.threshold},
               {"windows", std::move(windows)}},
      .tables = {layer_table(input)}};
  mark_massive_layers(figure.data, input.me_layer, input.last_massive_layer);
  if (input.me_layer) {
    figure.read +=
        " The dotted lines enclose the massive layers. Attention reads the state that the layer "
        "before left, so sinks can follow one layer later.";
  }
  return figure;
}

Figure sink_layers_figure(const SinksFiguresInput& input) {
  const SinkSummary& summary = input.result.summary;
  const double limit = input.result.options.threshold;
  LinePlot shares{
      .title = "share",
      .series = {{"sink rate", "first", "solid", summary.layer_rate},
                 {"mean alpha", "second", "solid", summary.layer_alpha},
                 {"alpha if attention were even", "median", "dash", input.result.uniform_alpha}},
      .levels = {{str_cat("threshold ", number_text(limit)), limit}},
      .range = share_range};
  LinePlot scores{.title = "score before the softmax (logit)",
                  .series = {{"mean score", "second", "solid", summary.layer_score}}};
  std::string see =
      str_cat("The sink rate is ", number_text(summary.sink_rate),
              " over all layers, heads and samples (", number_text(summary.sink_rate_incl_self),
              " when the token's own query counts, as some papers do).", comparison_words(input),
              quiet_words(input), hidden_words(input));
  if (input.control != nullptr) {
    const SinkSummary& control = input.control->summary;
    shares.series.push_back(
        {"sink rate of the control", "third", "dashdot", input.control->summary.layer_rate});
    scores.series.push_back(
        {"mean score of the control", "third", "dashdot", input.control->summary.layer_score});
    see +=
        str_cat(" The control, ", input.control_token.empty() ? "one token" : input.control_token,
                " repeated, has a rate of ", number_text(control.sink_rate),
                ": no position differs from another by its content, so what is left is what the "
                "place alone does.");
  }
  OrderedJson plots = OrderedJson::array();
  for (const LinePlot* plot : {&shares, &scores}) {
    plots.push_back(OrderedJson::array({line_plot_json(*plot)}));
  }
  Figure figure{
      .id = "sink-layers",
      .kind = "lines",
      .see = std::move(see),
      .read = str_cat(
          "The sink rate is the share of (sample, head) whose alpha is above ", number_text(limit),
          "; mean alpha does not depend on that convention. Compare both with the dashed line: "
          "what "
          "alpha would be if every query attended alike to all tokens that it sees. It is higher "
          "in "
          "layers with a sliding window, where only early queries still see ",
          key_words(input),
          ". \"Scores\" are logits, before the softmax: some papers call their means sink values."),
      .alt = str_cat("Line chart over ", summary.layer_rate.size(),
                     " layers: sink rate, mean alpha and what even attention would give. The table "
                     "of the picture before has the numbers."),
      .data = {{"first", {"Shares of attention", "Scores (logits)"}},
               {"second", OrderedJson::array()},
               {"plots", std::move(plots)}}};
  mark_massive_layers(figure.data, input.me_layer, input.last_massive_layer);
  return figure;
}

}  // namespace onset
