// The pictures of explain's experiments: factorial, vocabulary, doses.

#include <algorithm>
#include <cmath>

#include "onset/base/error.h"
#include "onset/massive/explain_json.h"
#include "onset/report/explain_figures.h"
#include "onset/report/html.h"

namespace onset {
namespace {

constexpr std::size_t listed_tokens = 24;
constexpr std::size_t piece_letters = 24;

std::string gain_label(double a) {
  if (a == 1.0) return "as is";
  return a == 0.0 ? "flattened" : "flattened to " + number_text(a);
}

std::string factorial_see(const FactorialResult& found) {
  const auto& plain = *cell_of(found, 1.0, FfnChange::as_is);
  std::string text = str_cat("As it is, the largest |x| after layer ", found.layer, " is ",
                             number_text(plain.at_layer));
  if (const auto* flat = cell_of(found, 0.0, FfnChange::as_is)) {
    text += str_cat("; with the gain flattened ", number_text(flat->at_layer));
  }
  if (const auto* held = cell_of(found, 1.0, FfnChange::normalised)) {
    text += str_cat("; with the FFN's product normalised ", number_text(held->at_layer));
  }
  if (const auto* both = cell_of(found, 0.0, FfnChange::normalised)) {
    text += str_cat("; with both ", number_text(both->at_layer));
  }
  for (const auto& interaction : found.interactions) {
    if (interaction.a != 0.0 || interaction.ffn != FfnChange::normalised) continue;
    text += str_cat(". The interaction of these two is ", number_text(interaction.value),
                    ", a factor of ", number_text(std::exp(interaction.value)));
  }
  return text + ".";
}

Table factorial_table(const FactorialResult& found) {
  Table table{.caption =
                  "M is the largest |x|, geometric mean over the prompts; the interaction is "
                  "log M11 - log M10 - log M01 + log M00",
              .header = {"gain", "FFN", "M after the layer", "of the token", "M later",
                         "perplexity", "sink rate", "interaction"},
              .numeric = {false, false, true, true, true, true, true, true},
              .rows = {}};
  for (const auto& cell : found.cells) {
    std::string interaction;
    for (const auto& one : found.interactions) {
      if (one.a == cell.a && one.ffn == cell.ffn) interaction = number_text(one.value);
    }
    table.rows.push_back({gain_label(cell.a), ffn_change_label(cell.ffn),
                          number_text(cell.at_layer), number_text(cell.of_token),
                          number_text(cell.later),
                          cell.text ? number_text(cell.text->perplexity) : "",
                          cell.text ? share_text(cell.text->sinks.sink_rate) : "", interaction});
  }
  return table;
}

std::string response(const DoseResult& dose, const DoseCondition* condition) {
  if (condition == nullptr) return "not measured";
  return str_cat("sink rate ", share_text(sinks_behind(condition->text.sinks, dose.layer)),
                 ", perplexity ", number_text(condition->text.perplexity));
}

}  // namespace

std::string ffn_change_label(FfnChange change) {
  switch (change) {
    case FfnChange::as_is:
      return "as is";
    case FfnChange::normalised:
      return "product normalised";
    case FfnChange::clamped:
      return "product clamped";
    case FfnChange::capped:
      break;
  }
  return "output capped";
}

std::string dose_label(const DoseResult& dose, const DoseCondition& condition) {
  if (condition.dose) {
    if (*condition.dose == 1.0) return "as it is";
    return *condition.dose == 0.0 ? "set to 0" : "times " + number_text(*condition.dose);
  }
  if (condition.name == "mean") return "set to the mean";
  if (condition.name == "block_write") return "block's whole write removed";
  if (condition.name == "control_dim") return str_cat("control: dim ", dose.control_dim);
  return str_cat("control: token ", dose.control_position);
}

std::vector<Figure> factorial_figures(const ExplainFiguresInput& input) {
  if (!input.result.factorial) return {};
  const auto& found = *input.result.factorial;
  const auto see = factorial_see(found);
  OrderedJson data = factorial_json(input.result.factorial);
  for (std::size_t i = 0; i < found.cells.size(); ++i) {
    data["cells"][i]["label"] = ffn_change_label(found.cells[i].ffn);
  }
  return {
      {.id = "factorial",
       .kind = "factorial",
       .see = see,
       .read =
           "Groups: what is done to the FFN of that layer; colours: what is done to the gain "
           "before it; the scale is logarithmic. Flattened to a: every gain w becomes mean + a (w "
           "- mean), without a number a is 0. Normalised: the product act(gate) * up is divided "
           "by its RMS; clamped: scaled down to the median token's RMS; capped: the output scaled "
           "down to twice the median token's length. If bars of one colour fall from group to "
           "group, "
           "the value needs the FFN's size; if colours differ within a group, it needs the shape "
           "of the gain. The dash is where a bar would end if each change took its own factor "
           "away. A bar that ends above it (interaction above 0): the two need each other, so "
           "taking either away already takes most; below it: either alone makes most of the "
           "value; on it: each has its own factor. The list has the effects on later layers, on "
           "a text's perplexity and on sinks.",
       .alt = "Bar chart of the factorial experiment. " + see,
       .data = std::move(data),
       .tables = {factorial_table(found)}}};
}

std::vector<Figure> vocabulary_figures(const ExplainFiguresInput& input) {
  if (!input.result.vocabulary) return {};
  const auto& found = *input.result.vocabulary;
  const double share = static_cast<double>(found.massive) / static_cast<double>(found.tokens);
  const auto text_of = [&](std::int64_t id) {
    const auto piece = input.pieces.find(id);
    return piece == input.pieces.end() ? std::string()
                                       : shortened(valid_utf8(piece->second), piece_letters);
  };
  OrderedJson data = vocabulary_json(input.result.vocabulary);
  for (const auto* list : {"small", "largest"}) {
    for (auto& token : data[list]) token["piece"] = text_of(token["id"].get<std::int64_t>());
  }
  Table table{.caption = found.small.empty()
                             ? str_cat("No entry stays below ", number_text(found.threshold))
                             : str_cat("Entries that stay below ", number_text(found.threshold)),
              .header = {"id", "largest |x|", "dim", "piece"},
              .numeric = {true, true, true, false},
              .rows = {}};
  for (std::size_t i = 0; i < std::min(found.small.size(), listed_tokens); ++i) {
    const auto& token = found.small[i];
    table.rows.push_back(
        {str_cat(token.id), number_text(token.largest), str_cat(token.dim), text_of(token.id)});
  }
  const auto see = str_cat(
      "Alone at position 0, ", number_text(static_cast<double>(found.massive)), " of ",
      number_text(static_cast<double>(found.tokens)), " vocabulary entries (", share_text(share),
      ") have an entry above ", number_text(found.threshold), " after layer ", found.layer,
      "; the median is ", number_text(found.quantiles[found.quantiles.size() / 2]), ".");
  return {{.id = "vocabulary",
           .kind = "vocabulary",
           .see = see,
           .read =
               "How many vocabulary entries reach which largest |x|; both axes are logarithmic. "
               "The dotted line is what counts as massive. One hump at the right: the first "
               "place makes nearly any token massive. Two humps: some tokens cannot carry it; "
               "the table lists those that stay smallest.",
           .alt = "Histogram of the largest magnitude over the vocabulary. " + see,
           .data = std::move(data),
           .tables = {table}}};
}

std::vector<Figure> dose_figures(const ExplainFiguresInput& input) {
  if (!input.result.dose) return {};
  const auto& found = *input.result.dose;
  OrderedJson data = dose_json(input.result.dose);
  Table table{.caption = str_cat("Sinks and perplexity of the text; \"later\" is the mean over the "
                                 "layers after layer ",
                                 found.layer),
              .header = {"massive entries", "perplexity", "sink rate", "later"},
              .numeric = {false, true, true, true},
              .rows = {}};
  for (std::size_t i = 0; i < found.conditions.size(); ++i) {
    const auto& condition = found.conditions[i];
    const double behind = sinks_behind(condition.text.sinks, found.layer);
    data["conditions"][i]["label"] = dose_label(found, condition);
    data["conditions"][i]["rate_behind"] = finite_or_null(behind);
    table.rows.push_back({dose_label(found, condition), number_text(condition.text.perplexity),
                          share_text(condition.text.sinks.sink_rate), share_text(behind)});
  }
  const auto see = str_cat("In the layers after layer ", found.layer,
                           ", as it is: ", response(found, condition_of(found, "dose", 1.0)),
                           ". With the massive entries set to "
                           "0: ",
                           response(found, condition_of(found, "dose", 0.0)),
                           "; to their mean: ", response(found, condition_of(found, "mean")),
                           ". Control, dim ", found.control_dim,
                           " set to 0: ", response(found, condition_of(found, "control_dim")), ".");
  return {{.id = "dose",
           .kind = "dose",
           .see = see,
           .read =
               "First the mean sink rate of the layers after the edited one, then the "
               "perplexity of the text, logarithmic. From above, the massive entries are scaled "
               "down, then set to their mean over the prompts. The grey bars: all that the "
               "block writes to the token removed, then two controls that leave the entries "
               "alone. Sinks that fall with the dose while the controls stay rest on the massive "
               "entries; what is left at 0 has other causes. The list has "
               "every layer's sink rate, and the keys and values of the token.",
           .alt = "Bar charts of sink rate and perplexity for each condition. " + see,
           .data = std::move(data),
           .tables = {table}}};
}

}  // namespace onset
