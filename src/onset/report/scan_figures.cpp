#include "onset/report/scan_figures.h"

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/massive/stage_json.h"
#include "onset/report/html.h"
#include "onset/report/scan_words.h"

namespace onset {
namespace {

// Lines of other prompts in the first picture: enough to see whether they agree.
constexpr std::size_t most_other_prompts = 16;

const PromptScan& drawn(const ScanPageInput& input) { return input.scan.prompts[input.prompt]; }

OrderedJson optional_layer(const std::optional<std::int64_t>& layer) {
  return layer ? OrderedJson(*layer) : OrderedJson(nullptr);
}

std::string percent_words(const std::optional<double>& share) {
  return share ? number_text(std::round(*share * 1000) / 10) + " %" : "";
}

// Where the rule sees a massive entry: above this.
double threshold(const ScanOptions& options, const LayerStatistics& layer) {
  const double relative = options.min_ratio * static_cast<double>(layer.median_abs);
  return options.rule == ScanRule::absolute ? std::max(options.min_abs, relative) : relative;
}

std::vector<std::int64_t> bounds(const std::vector<Block>& blocks) {
  std::vector<std::int64_t> result;
  result.reserve(blocks.size() + 1);
  for (const Block& block : blocks) result.push_back(block.begin);
  if (!blocks.empty()) result.push_back(blocks.back().end);
  return result;
}

// rows and columns as the bounds of their blocks, z as rows of maxima, and, where a cell stands for
// several entries, `at`: which of them is the maximum, counted row by row within the block.
OrderedJson surface_json(const BlockMaxima& maxima) {
  OrderedJson z = OrderedJson::array();
  OrderedJson at = OrderedJson::array();
  for (std::size_t r = 0; r < maxima.rows.size(); ++r) {
    OrderedJson values = OrderedJson::array();
    OrderedJson places = OrderedJson::array();
    for (std::size_t c = 0; c < maxima.columns.size(); ++c) {
      const BlockMaxima::Cell& cell = maxima.at(r, c);
      const Block& columns = maxima.columns[c];
      values.push_back(picture_number(cell.value));
      places.push_back((cell.row - maxima.rows[r].begin) * columns.size() +
                       (cell.column - columns.begin));
    }
    z.push_back(std::move(values));
    at.push_back(std::move(places));
  }
  OrderedJson json{
      {"rows", bounds(maxima.rows)}, {"columns", bounds(maxima.columns)}, {"z", std::move(z)}};
  json["at"] = maxima.exact() ? OrderedJson(nullptr) : std::move(at);
  return json;
}

std::string hidden_label(const std::vector<std::int64_t>& tokens) {
  if (tokens.size() == 1) return "Without the first token";
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(tokens.size(), 3); ++i) {
    names += str_cat(i == 0 ? "" : ", ", tokens[i]);
  }
  return str_cat("Without tokens ", names, tokens.size() > 3 ? ", .." : "");
}

Table layer_table(const ScanPageInput& input) {
  const PromptScan& prompt = drawn(input);
  Table table{.caption = "After each layer: the largest entry by magnitude, and the median",
              .header = {"layer", "largest", "token", "dimension", "second", "third", "median",
                         "ratio", ""},
              .numeric = {true, true, false, true, true, true, true, true, false},
              .rows = {}};
  for (std::size_t l = 0; l < prompt.layers.size(); ++l) {
    const LayerStatistics& layer = prompt.layers[l];
    const auto& largest = input.states.largest[l];
    const auto other = [&](std::size_t rank) {
      return rank < largest.size() ? number_text(largest[rank].value) : std::string();
    };
    const bool born = prompt.me_layer == layer.layer;
    table.rows.push_back({str_cat(layer.layer), number_text(layer.largest.value),
                          token_words(input, layer.largest.token), str_cat(layer.largest.dim),
                          other(1), other(2), number_text(layer.median_abs),
                          number_text(layer.ratio()),
                          born ? "ME layer" : (layer.massive ? "massive" : "")});
  }
  return table;
}

// "5: 23,687, 2: -0.3": what each expert adds, the largest first.
std::string expert_parts(const Stage& stage) {
  constexpr std::size_t most = 4;
  std::string text;
  const auto count = std::min(stage.experts.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    const ExpertPart& part = stage.experts[i];
    text += str_cat(i == 0 ? "" : ", ", part.expert, ": ", number_text(part.value));
  }
  if (stage.experts.size() > count) text += str_cat(", ", stage.experts.size() - count, " more");
  return text;
}

Table stage_table(const ScanPageInput& input) {
  Table table{.caption = "Signed values at the stage's token and dimension",
              .header = {"layer", "", "dimension", "before", "after", "input", "attention", "share",
                         "FFN", "share"},
              .numeric = {true, false, true, true, true, true, true, true, true, true},
              .rows = {}};
  const auto& stages = drawn(input).stages;
  const bool mixture =
      std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return !s.experts.empty(); });
  const bool shared = std::any_of(stages.begin(), stages.end(),
                                  [](const Stage& s) { return s.shared_out.has_value(); });
  const auto add_column = [&table](const char* name, bool numeric) {
    table.header.emplace_back(name);
    table.numeric.push_back(numeric);
  };
  if (mixture) add_column("main expert", false);
  if (shared) add_column("shared expert", true);
  if (mixture) add_column("experts", false);
  for (const Stage& stage : stages) {
    std::vector<std::string> row{
        str_cat(stage.layer),        stage.kind == StageKind::rise ? "rise" : "fall",
        str_cat(stage.dim),          number_text(stage.before),
        number_text(stage.after),    number_text(stage.resid_pre),
        number_text(stage.attn_out), percent_words(stage.attn_share),
        number_text(stage.ffn_out),  percent_words(stage.ffn_share)};
    if (mixture) row.push_back(main_expert(stage));
    if (shared) row.push_back(stage.shared_out ? number_text(*stage.shared_out) : std::string());
    if (mixture) row.push_back(expert_parts(stage));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string token_words(const ScanPageInput& input, std::int64_t token) {
  const auto at = static_cast<std::size_t>(token);
  if (at < input.tokens.size()) {
    return str_cat("token ", token, " (\"", shortened(valid_utf8(input.tokens[at]), 24), "\")");
  }
  return str_cat("token ", token, " (id ", drawn(input).ids[at], ")");
}

std::string drawn_token(const ScanPageInput& input) {
  const std::int64_t token = input.states.view.token;
  return token == 0 ? "the first token" : str_cat("token ", token);
}

Figure magnitude_figure(const ScanPageInput& input) {
  const PromptScan& prompt = drawn(input);
  OrderedJson largest = OrderedJson::array();
  OrderedJson median = OrderedJson::array();
  OrderedJson limits = OrderedJson::array();
  for (std::size_t l = 0; l < prompt.layers.size(); ++l) {
    OrderedJson entries = OrderedJson::array();
    for (const StateEntry& entry : input.states.largest[l]) {
      entries.push_back({entry.token, entry.dim, float_or_null(entry.value)});
    }
    largest.push_back(std::move(entries));
    median.push_back(float_or_null(prompt.layers[l].median_abs));
    limits.push_back(finite_or_null(threshold(input.scan.options, prompt.layers[l])));
  }
  OrderedJson others = OrderedJson::array();
  for (std::size_t p = 0; p < input.scan.prompts.size(); ++p) {
    if (p == input.prompt || others.size() == most_other_prompts) continue;
    OrderedJson values = OrderedJson::array();
    for (const auto& layer : input.scan.prompts[p].layers) {
      values.push_back(picture_number(std::fabs(layer.largest.value)));
    }
    others.push_back({{"prompt", p}, {"values", std::move(values)}});
  }
  const std::int64_t layer = input.states.view.layer;
  Figure figure{
      .id = "magnitude",
      .kind = "magnitude",
      .see = str_cat("The largest entry of the residual stream ", jump_words(prompt, layer), "."),
      .read = str_cat("Each point is the state after a layer; the scale is logarithmic, so equal "
                      "steps are equal factors. The dotted line is the rule: an entry is massive ",
                      rule_words(input.scan.options), "."),
      .alt = {},
      .data = {{"largest", std::move(largest)},
               {"median", std::move(median)},
               {"threshold", std::move(limits)},
               {"me_layer", optional_layer(prompt.me_layer)},
               {"last_massive_layer", optional_layer(prompt.last_massive_layer)},
               {"others", std::move(others)}}};
  if (prompt.me_layer) {
    figure.read += " The tinted band reaches from the ME layer to the last massive layer.";
  }
  if (input.scan.prompts.size() > 1) {
    figure.read += " Grey lines are the largest entries of the other prompts.";
  }
  figure.read +=
      " Where the largest line leaves the second and third behind, one entry carries it; a median "
      "that stays low says that the other entries do not follow.";
  figure.alt =
      str_cat("Line chart over ", prompt.layers.size(),
              " layers, logarithmic: the three largest magnitudes and the median. The largest ",
              jump_words(prompt, layer), ". The table below has the numbers.");
  figure.tables = {layer_table(input)};
  return figure;
}

Figure token_figure(const ScanPageInput& input) {
  const PictureView& view = input.states.view;
  const PromptScan& prompt = drawn(input);
  const LayerStatistics& layer = prompt.layers[static_cast<std::size_t>(view.layer)];
  const std::string peak =
      str_cat(number_text(std::fabs(layer.largest.value)), " at ",
              token_words(input, layer.largest.token), ", dimension ", layer.largest.dim);
  const bool can_hide = prompt.ids.size() > view.alone.size();
  Figure figure{
      .id = "tokens",
      .kind = "surface",
      .see = str_cat("|x| of every token in every dimension after layer ", view.layer,
                     ". The largest is ", peak, "; the median is ", number_text(layer.median_abs),
                     flatness_words(input.states.tokens), "."),
      .read =
          "Height is |x|, colour its logarithm, so that the colours still tell the small "
          "entries apart. Drag to turn, scroll or pinch to come closer, point to read a value.",
      .alt = str_cat("Surface of the magnitudes after layer ", view.layer, " over ",
                     prompt.ids.size(), " tokens and ", input.states.tokens.columns.back().end,
                     " dimensions. The highest point is ", peak, "."),
      .data = surface_json(input.states.tokens)};
  figure.data["row_kind"] = "token";
  if (can_hide) {
    std::vector<std::int64_t> rows = view.alone;
    std::sort(rows.begin(), rows.end());
    figure.data["hide"] = {{"label", hidden_label(rows)}, {"rows", rows}};
    figure.read += str_cat(" \"", hidden_label(rows),
                           "\" shows the rest at a scale of its own: a ridge that runs across the "
                           "tokens in one dimension is an ordinary outlier channel, and no massive "
                           "activation.");
  }
  figure.read += thinned_words(input.states.tokens, "tokens");
  return figure;
}

Figure layer_figure(const ScanPageInput& input) {
  const PictureView& view = input.states.view;
  const PromptScan& prompt = drawn(input);
  Figure figure{
      .id = "layers",
      .kind = "surface",
      .see = str_cat("|x| of ", token_words(input, view.token),
                     " in every dimension after every layer: as the paper that names the ME "
                     "layer draws it (arXiv 2605.08504). ",
                     wall_words(drawn(input), input.states)),
      .read =
          "Layers run from front to back, dimensions along the wide side; height is |x|, colour "
          "its logarithm. Walls that begin in the same layer in several dimensions are written "
          "by the same block. The logarithmic scale shows the smaller steps before it.",
      .alt = str_cat("Surface of the magnitudes of ", token_words(input, view.token), " over ",
                     prompt.layers.size(), " layers and ", input.states.layers.columns.back().end,
                     " dimensions."),
      .data = surface_json(input.states.layers)};
  figure.data["row_kind"] = "layer";
  figure.data["token"] = view.token;
  figure.data["me_layer"] = optional_layer(prompt.me_layer);
  figure.read += thinned_words(input.states.layers, "layers");
  return figure;
}

Figure stage_figure(const ScanPageInput& input) {
  const PromptScan& prompt = drawn(input);
  const auto& largest = *std::max_element(
      prompt.stages.begin(), prompt.stages.end(), [](const Stage& a, const Stage& b) {
        return std::fabs(a.after - a.before) < std::fabs(b.after - b.before);
      });
  const std::string what =
      str_cat("layer ", largest.layer, ", dimension ", largest.dim, ": input ",
              number_text(largest.resid_pre), ", attention ", number_text(largest.attn_out),
              ", FFN ", number_text(largest.ffn_out),
              main_expert(largest).empty() ? "" : " (most of it " + main_expert(largest) + ")");
  return {
      .id = "stages",
      .kind = "stages",
      .see = str_cat("Every layer in which the largest entry of ",
                     token_words(input, prompt.stages.front().token),
                     " at least doubles or halves, and the three parts that add up to the block's "
                     "output in that dimension. The largest change is in ",
                     what, "."),
      .read =
          "The parts add up exactly: output = input + attention + FFN. Bars to the right push "
          "the entry the way it points, bars to the left against it. Each stage is scaled to "
          "its own size, since a rise by 200 would not show beside one by 20,000; \"Values\" "
          "has the numbers. In a rise the large part is the writer; in a fall the bar to the "
          "left is what removes the entry.",
      .alt =
          str_cat("Bar chart of ", prompt.stages.size(),
                  " stages with the parts of input, attention and FFN. The largest change is in ",
                  what, ". The table below has the numbers."),
      .data = {{"stages", stages_json(prompt.stages)}},
      .tables = {stage_table(input)}};
}

}  // namespace onset
