#include "onset/report/explain_figures.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "onset/base/error.h"
#include "onset/massive/explain_json.h"
#include "onset/report/html.h"

namespace onset {
namespace {

constexpr std::size_t most_points = 1500;  // dims of the picture of gain and state
constexpr std::size_t listed_dims = 4;     // columns of the table of gains

OrderedJson shown(double value) { return picture_number(static_cast<float>(value)); }

// ---- gains

Table gains_table(const std::string& caption, const std::vector<LayerGains>& gains,
                  const std::vector<std::int64_t>& dims) {
  Table table{.caption = caption,
              .header = {"layer", "|w| 5 %", "median", "95 %"},
              .numeric = {true, true, true, true},
              .rows = {}};
  const auto count = std::min(dims.size(), listed_dims);
  for (std::size_t i = 0; i < count; ++i) table.header.push_back(str_cat("w in dim ", dims[i]));
  table.header.insert(table.header.end(), {"amplification", "others"});
  table.numeric.resize(table.header.size(), true);
  for (const auto& layer : gains) {
    std::vector<std::string> row{str_cat(layer.layer), number_text(layer.quantiles[1]),
                                 number_text(layer.quantiles[3]), number_text(layer.quantiles[5])};
    for (std::size_t i = 0; i < count; ++i) row.push_back(number_text(layer.at_dims[i]));
    row.push_back(number_text(layer.amplification));
    row.push_back(number_text(layer.others_amplification));
    table.rows.push_back(std::move(row));
  }
  return table;
}

const LayerGains* gains_at(const std::vector<LayerGains>& gains, std::int64_t layer) {
  for (const auto& row : gains) {
    if (row.layer == layer) return &row;
  }
  return nullptr;
}

Figure gains_figure(const ExplainFiguresInput& input) {
  const auto& gains = input.result.norm->gains;
  const auto& target = input.result.target;
  const bool before_ffn = !gains.ffn.empty();
  const auto* here = gains_at(before_ffn ? gains.ffn : gains.attention, target.layer);
  std::string see = "The gains of the norms, layer by layer.";
  if (here != nullptr && !here->at_dims.empty()) {
    see = str_cat("In layer ", target.layer, " the norm before ",
                  before_ffn ? "the FFN" : "attention", " has gain ",
                  number_text(here->at_dims.front()), " in dim ", target.dims.front(), "; ",
                  here->percentiles.front() == 0
                      ? std::string("it is the smallest")
                      : share_text(here->percentiles.front()) + " of the gains are smaller",
                  " by size, and the median |w| is ", number_text(here->quantiles[3]),
                  ". It makes the massive token ", number_text(here->amplification),
                  " times as long as x_hat, the median other token ",
                  number_text(here->others_amplification), " times.");
  }
  OrderedJson data = norm_json(input.result.norm)["gains"];
  data["layer"] = target.layer;
  data["dims"] = target.dims;
  Figure figure{.id = "gains",
                .kind = "gains",
                .see = see,
                .read =
                    "The bands hold 90 % and the middle half of the gains |w| of each layer's "
                    "norm, the line is their median, marks are |w| in the massive dims, and the "
                    "dotted line is the explained layer. A mark far below the bands: the module "
                    "behind that norm hardly reads the dim. \"Amplification\" is |w x_hat| / "
                    "|x_hat| of the massive token beside the median of the others.",
                .alt = "Line chart over the layers: quantiles of the gains. " + see,
                .data = std::move(data)};
  if (before_ffn) {
    figure.tables.push_back(gains_table("The norm before the FFN", gains.ffn, target.dims));
  }
  if (!gains.attention.empty()) {
    figure.tables.push_back(gains_table("The norm before attention", gains.attention, target.dims));
  }
  return figure;
}

// ---- energy

OrderedJson points_json(const NormAnalysis& norm) {
  std::set<std::size_t> kept;
  for (const auto& row : norm.massive_dims) kept.insert(static_cast<std::size_t>(row.dim));
  std::vector<std::size_t> order(norm.x.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  const auto by = [&](const std::vector<float>& values) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::fabs(values[a]) > std::fabs(values[b]);
    });
    for (std::size_t i = 0; i < std::min(most_points / 2, order.size()); ++i) kept.insert(order[i]);
  };
  by(norm.x);
  by(norm.product);
  OrderedJson dims = OrderedJson::array();
  OrderedJson gain = OrderedJson::array();
  OrderedJson x_hat = OrderedJson::array();
  for (const std::size_t d : kept) {
    dims.push_back(d);
    gain.push_back(picture_number(norm.gain[d]));
    x_hat.push_back(shown(static_cast<double>(norm.x[d]) / norm.token.rms));
  }
  OrderedJson massive = OrderedJson::array();
  for (const auto& row : norm.massive_dims) massive.push_back(row.dim);
  OrderedJson read = OrderedJson::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(4, norm.top_dims.size()); ++i) {
    read.push_back(norm.top_dims[i].dim);
  }
  return {{"dim", std::move(dims)},
          {"gain", std::move(gain)},
          {"x_hat", std::move(x_hat)},
          {"massive", std::move(massive)},
          {"most_read", std::move(read)}};
}

Table dims_table(const std::string& caption, const std::vector<NormDim>& dims) {
  Table table{.caption = caption,
              .header = {"dim", "x_hat", "gain", "rank of |gain|", "product", "energy before",
                         "after", "|product| of others"},
              .numeric = {true, true, true, true, true, true, true, true},
              .rows = {}};
  for (const auto& row : dims) {
    table.rows.push_back({str_cat(row.dim), number_text(row.normalised), number_text(row.gain),
                          str_cat(row.gain_rank + 1), number_text(row.product),
                          share_text(row.energy_before), share_text(row.energy_after),
                          number_text(row.others_product)});
  }
  return table;
}

// A count of dims that is none of single ones: whole from 10 on.
std::string dims_text(double count) { return number_text(count < 10 ? count : std::round(count)); }

Figure energy_figure(const ExplainFiguresInput& input) {
  const NormAnalysis& norm = *input.result.norm->ffn_norm;
  const auto& token = norm.token;
  const bool concentrates = token.after.participation < token.before.participation;
  std::string see = str_cat(
      "The gain ", concentrates ? "concentrates" : "spreads", " the energy of ", input.token,
      ": its 16 largest dims hold ", share_text(token.before.top16), " before it and ",
      share_text(token.after.top16), " after it; about ", dims_text(token.before.participation),
      " dims carry it before, ", dims_text(token.after.participation), " after.");
  if (!norm.massive_dims.empty()) {
    const auto& dim = norm.massive_dims.front();
    see +=
        str_cat(" Dim ", dim.dim, " holds ", share_text(dim.energy_before),
                " of the energy before the gain and ", share_text(dim.energy_after), " after it.");
  }
  if (norm.others) {
    see +=
        str_cat(" The median other token has about ", dims_text(norm.others->before.participation),
                " and ", dims_text(norm.others->after.participation), ".");
  }
  OrderedJson data = norm_json(input.result.norm)["ffn_norm"]["energy_curve"];
  data["points"] = points_json(norm);
  return {.id = "energy",
          .kind = "energy",
          .see = see,
          .read =
              "How much of the squared length the k largest dims hold: a line that begins high "
              "is concentrated in few dims. \"Dim by dim\" sets each dim's size before the gain "
              "against its gain: the FFN reads much of what stands at the upper right, and "
              "hardly anything of what stands at the left, however large it is.",
          .alt = "Line chart of cumulative energy over the number of dims. " + see,
          .data = std::move(data),
          .tables = {dims_table("The massive dims", norm.massive_dims),
                     dims_table("The dims of most energy after the gain", norm.top_dims)}};
}

// ---- neurons

std::string neuron_name(const NeuronPart& neuron) {
  return neuron.module == "ffn" ? str_cat("neuron ", neuron.neuron)
                                : str_cat(module_label(neuron.module), ", neuron ", neuron.neuron);
}

OrderedJson neurons_json(const std::vector<NeuronPart>& neurons, double sum, std::int64_t count) {
  OrderedJson bars = OrderedJson::array();
  double rest = sum;
  for (const auto& neuron : neurons) {
    rest -= neuron.contribution;
    bars.push_back({{"name", neuron_name(neuron)},
                    {"value", finite_or_null(neuron.contribution)},
                    {"share", neuron.share ? finite_or_null(*neuron.share) : OrderedJson(nullptr)},
                    {"gate", shown(neuron.gate)},
                    {"up", shown(neuron.up)},
                    {"weight", shown(neuron.weight)}});
  }
  const auto others = count - std::ssize(neurons);
  if (others > 0) {
    bars.push_back({{"name", str_cat("all ", others, " others")}, {"value", finite_or_null(rest)}});
  }
  return bars;
}

OrderedJson entry_json(const std::string& title, const EntryAttribution& entry) {
  OrderedJson modules = OrderedJson::array();
  for (const auto& part : entry.modules) {
    modules.push_back(
        {{"name", module_label(part.module)}, {"value", finite_or_null(part.contribution)}});
  }
  OrderedJson heads = OrderedJson::array();
  for (const auto& part : entry.heads) {
    heads.push_back(
        {{"name", str_cat("head ", part.head)}, {"value", finite_or_null(part.contribution)}});
  }
  return {{"title", title},
          {"layer", entry.layer},
          {"dim", entry.dim},
          {"resid_pre", float_or_null(entry.resid_pre)},
          {"attn_out", float_or_null(entry.attn_out)},
          {"ffn_out", float_or_null(entry.ffn_out)},
          {"neurons", neurons_json(entry.neurons, entry.neuron_sum, entry.neuron_count)},
          {"modules", std::move(modules)},
          {"heads", std::move(heads)}};
}

Table neurons_table(const std::string& caption, const EntryAttribution& entry) {
  Table table{.caption = caption,
              .header = {"neuron", "gate", "up", "product", "weight", "contribution", "share",
                         "of its gate, from this dim"},
              .numeric = {false, true, true, true, true, true, true, true},
              .rows = {}};
  for (const auto& neuron : entry.neurons) {
    table.rows.push_back({neuron_name(neuron), number_text(neuron.gate), number_text(neuron.up),
                          number_text(neuron.product), number_text(neuron.weight),
                          number_text(neuron.contribution),
                          neuron.share ? share_text(*neuron.share) : "",
                          neuron.gate_terms.empty() ? "" : number_text(neuron.gate_from_dim)});
  }
  return table;
}

std::string stage_title(const Stage& stage) {
  return str_cat("layer ", stage.layer, ", ", stage.kind == StageKind::rise ? "rise" : "fall",
                 ", dim ", stage.dim);
}

// "neuron 1229 writes 17,170 (72.5 %), neuron 1487 6,446 (27.2 %)".
std::string writers(const EntryAttribution& entry) {
  const auto needed =
      static_cast<std::size_t>(std::max<std::int64_t>(1, entry.neurons_for_90_percent));
  const auto count = std::min({needed, std::size_t{2}, entry.neurons.size()});
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& neuron = entry.neurons[i];
    text += str_cat(i == 0 ? "" : ", ", neuron_name(neuron), i == 0 ? " writes " : " ",
                    number_text(neuron.contribution));
    if (neuron.share) text += str_cat(" (", share_text(*neuron.share), ")");
  }
  return text;
}

constexpr const char* neurons_read =
    "Each bar is what one neuron adds to this entry of the residual stream: act(gate) * up * its "
    "weight in the down projection. All bars together are what the FFN adds, exactly. Few long "
    "bars "
    "say that few neurons do it, a long last bar that many do.";

}  // namespace

std::string module_label(const std::string& module) {
  constexpr std::string_view expert = "experts.";
  if (module.starts_with(expert)) return "expert " + module.substr(expert.size());
  return module == "shared" ? "the shared expert" : module;
}

std::string share_text(double share) {
  if (std::isnan(share)) return {};
  const double percent = share * 100;
  if (percent > 0 && percent < 0.001) return "below 0.001 %";
  if (percent != 0 && std::fabs(percent) < 0.05) return number_text(percent) + " %";
  if (percent < 100 && percent >= 99.95) {  // nearly all is not all
    return number_text(std::min(99.99, std::round(percent * 100) / 100)) + " %";
  }
  return number_text(std::round(percent * 10) / 10) + " %";
}

std::vector<Figure> norm_figures(const ExplainFiguresInput& input) {
  std::vector<Figure> figures;
  if (!input.result.norm) return figures;
  const auto& norm = *input.result.norm;
  if (!norm.gains.ffn.empty() || !norm.gains.attention.empty()) {
    figures.push_back(gains_figure(input));
  }
  if (norm.ffn_norm) figures.push_back(energy_figure(input));
  return figures;
}

std::vector<Figure> neuron_figures(const ExplainFiguresInput& input) {
  if (!input.result.ffn || input.result.ffn->entries.empty()) return {};
  const auto& ffn = *input.result.ffn;
  OrderedJson entries = OrderedJson::array();
  std::vector<Table> tables;
  for (const auto& entry : ffn.entries) {
    const auto title = str_cat("layer ", entry.layer, ", dim ", entry.dim);
    entries.push_back(entry_json(title, entry));
    tables.push_back(neurons_table(title, entry));
  }
  for (const auto& stage : ffn.stages) {
    if (stage.stage.layer == input.result.target.layer) continue;
    entries.push_back(entry_json(stage_title(stage.stage), stage.entry));
  }
  const auto& first = ffn.entries.front();
  Figure figure{
      .id = "neurons",
      .kind = "neurons",
      .see = str_cat("In layer ", first.layer, " the FFN adds ", number_text(first.ffn_out),
                     " to dim ", first.dim, " of ", input.token, ", attention ",
                     number_text(first.attn_out), ". Of its ", first.neuron_count, " neurons ",
                     writers(first), "; ", first.neurons_for_90_percent,
                     first.neurons_for_90_percent == 1 ? " carries" : " carry",
                     " 90 % of all that is written there."),
      .read = neurons_read,
      .alt = {},
      .data = {{"entries", std::move(entries)}},
      .tables = std::move(tables)};
  figure.alt = "Bar chart of the neurons with the largest contributions. " + figure.see;
  if (first.modules.size() > 1) {
    figure.read += " \"By expert\" sums them up by the experts that the token was sent to.";
  }
  if (figure.data["entries"].size() > 1) {
    figure.read += " The list chooses the entry: the ones explained, and the token's other rises.";
  }
  return {figure};
}

std::vector<Figure> fall_figures(const ExplainFiguresInput& input) {
  if (!input.result.fall || input.result.fall->stages.empty()) return {};
  OrderedJson entries = OrderedJson::array();
  std::vector<Table> tables;
  std::string see;
  for (const auto& stage : input.result.fall->stages) {
    const auto& entry = stage.entry;
    entries.push_back(entry_json(stage_title(stage.stage), entry));
    tables.push_back(neurons_table(stage_title(stage.stage), entry));
    see += str_cat(see.empty() ? "" : " ", "Layer ", entry.layer, " takes dim ", entry.dim,
                   " from ", number_text(entry.resid_pre), " to ", number_text(entry.resid_post),
                   ": FFN ", number_text(entry.ffn_out), ", attention ",
                   number_text(entry.attn_out), "; ", writers(entry), ".");
  }
  Figure figure{
      .id = "fall",
      .kind = "neurons",
      .see = see,
      .read = str_cat(neurons_read,
                      " Here they write against the entry's sign. \"Heads\" shows the same "
                      "of the attention heads."),
      .alt = "Bar chart of the neurons that write against the massive entry. " + see,
      .data = {{"entries", std::move(entries)}},
      .tables = std::move(tables)};
  return {figure};
}

}  // namespace onset
