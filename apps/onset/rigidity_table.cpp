// The tables of `onset rigidity`, at most 80 columns wide.

#include <algorithm>
#include <cmath>
#include <limits>

#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "rigidity_report.h"

namespace onset::app {
namespace {

std::string header_text(const ModelRigidity& rigidity, const TextStyle& style) {
  const auto& model = rigidity.model;
  const std::string bos = rigidity.bos ? str_cat(*rigidity.bos) : "none";
  const auto count = static_cast<std::int64_t>(rigidity.compared.size());
  std::string text =
      "model   " +
      wrap(str_cat(printable(rigidity.path, style.utf8), ": ",
                   model["architecture"].get<std::string>(), ", ", model["layers"].dump(),
                   " layers, hidden ", model["hidden"].dump(), ", BOS ", bos,
                   adapter_words(model["adapter"])),
           80, 8) +
      "\n";
  std::string prompts = counted(count, "prompt");
  if (const auto all = static_cast<std::int64_t>(rigidity.prompts.size()); all > count) {
    prompts += str_cat(" of ", all, ": those with the ME layer ", *rigidity.scan.me_layer);
  }
  return text + "prompts " + wrap(prompts, 80, 8) + "\n";
}

// "prompt 0: token 0 "My", baseline 4 " is"".
std::string token_text(const EncodedPrompt& prompt, std::int64_t token, const TextStyle& style) {
  const auto at = static_cast<std::size_t>(token);
  if (at < prompt.shown.size()) {
    return str_cat(token, " \"", fit(printable(prompt.shown[at], style.utf8), 16, style.utf8),
                   "\"");
  }
  return str_cat(token, " id ", prompt.ids[at]);
}

std::string prompts_text(const ModelRigidity& rigidity, const TextStyle& style) {
  constexpr std::size_t most_rows = 12;
  std::string text = "prompt tokens  token                   baseline token          text\n";
  const auto& prompts = rigidity.result.prompts;
  for (std::size_t i = 0; i < std::min(prompts.size(), most_rows); ++i) {
    const auto& encoded = rigidity.prompts[rigidity.compared[i]];
    const auto& baseline = prompts[i].baseline;
    text += pad_left(str_cat(rigidity.compared[i]), 6) + pad_left(str_cat(encoded.ids.size()), 7) +
            "  " + pad_right(token_text(encoded, prompts[i].token, style), 24) +
            pad_right(baseline ? token_text(encoded, *baseline, style) : "none", 24) +
            fit(trim(printable(encoded.text, style.utf8)), 17, style.utf8) + "\n";
  }
  if (prompts.size() > most_rows) {
    text += str_cat("  and ", prompts.size() - most_rows, " more (--json lists all)\n");
  }
  return text + "\n";
}

const StateRigidity* state_of(const SiteRigidity& site, bool baseline) {
  if (!baseline) return &site.token;
  return site.baseline ? &*site.baseline : nullptr;
}

std::string table(const ModelRigidity& rigidity, bool baseline) {
  const auto& sites = rigidity.result.sites;
  std::string text = rigidity_heading(sites);
  const std::size_t layers = sites.front().token.prompts.size();
  for (std::size_t l = 0; l < layers; ++l) {
    const bool born = rigidity.scan.me_layer == static_cast<std::int64_t>(l);
    text += (born ? "ME" : "  ") + pad_left(str_cat(l), 3);
    for (const auto& site : sites) {
      text += rigidity_cells_text(rigidity_cell(*state_of(site, baseline), l), fixed);
    }
    text += "\n";
  }
  return text + "\n";
}

// Means over layers of a column; NaN is passed over.
template <typename Value>
double mean_over(std::size_t first, std::size_t last, Value&& value) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t l = first; l <= last; ++l) {
    const double here = value(l);
    if (std::isnan(here)) continue;
    sum += here;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

// "cosine 0.9999 with the layer before, 0.9998 between prompts, effective rank 1.07 of at most 8".
std::string state_phrase(const StateRigidity& state, std::size_t first, std::size_t last) {
  const auto previous =
      mean_over(first + 1, last, [&](auto l) { return state.mean_layers[l][l - 1]; });
  const auto pairs = mean_over(first, last, [&](auto l) { return state.mean_prompts[l]; });
  const auto rank = mean_over(first, last, [&](auto l) { return state.effective_rank[l]; });
  std::vector<std::string> parts;
  if (!std::isnan(previous)) parts.push_back(fixed(previous, 4) + " with the layer before");
  if (!std::isnan(pairs)) parts.push_back(fixed(pairs, 4) + " between prompts");
  std::string text = parts.empty() ? "no cosine" : "cosine " + join(parts, ", ");
  if (!std::isnan(rank)) {
    text += str_cat(", effective rank ", fixed(rank, 2), " of at most ", state.layers.size());
  }
  return text;
}

std::string verdict(const ModelRigidity& rigidity) {
  const auto& stream = rigidity.result.sites.front();
  const auto& scan = rigidity.scan;
  const bool plateau = scan.me_layer && scan.last_massive_layer;
  const auto first = plateau ? static_cast<std::size_t>(*scan.me_layer) : 0;
  const auto last = plateau ? static_cast<std::size_t>(*scan.last_massive_layer)
                            : stream.token.prompts.size() - 1;
  std::string text = str_cat("Residual stream, means over layers ", first, " to ", last,
                             plateau ? " (from the ME layer to the last massive layer)" : "", ": ",
                             rigidity.named.token ? "the token has " : "the massive token has ",
                             state_phrase(stream.token, first, last));
  text += stream.baseline
              ? "; the baseline token " + state_phrase(*stream.baseline, first, last) + "."
              : std::string("; no prompt has a baseline token.");
  const std::size_t prompts = stream.token.layers.size();
  const std::size_t distinct = distinct_prefixes(rigidity.result.prompts);
  if (distinct < prompts) {
    text += str_cat("\nNote: the ", prompts, " prompts have only ", distinct,
                    distinct == 1 ? " beginning" : " beginnings",
                    " up to their token, and equal beginnings give equal states by causality",
                    ". Prompts that begin alike say nothing about rigidity between prompts.");
  }
  if (prompts == 1) {
    text += "\nWith one prompt nothing can be said about how the state differs between prompts.";
  }
  return text;
}

}  // namespace

RigidityCell rigidity_cell(const StateRigidity& state, std::size_t layer) {
  return {.previous = layer > 0 ? state.mean_layers[layer][layer - 1]
                                : std::numeric_limits<double>::quiet_NaN(),
          .pairs = state.mean_prompts[layer],
          .rank = state.effective_rank[layer]};
}

std::string rigidity_heading(const std::vector<SiteRigidity>& sites) {
  std::string names(5, ' ');
  std::string columns = "layer";
  for (const auto& site : sites) {
    names += "   " + pad_right(std::string(site_kind_name(site.site)), 15);
    columns += "   prev pairs rank";
  }
  return str_cat(names.substr(0, names.find_last_not_of(' ') + 1), "\n", columns, "\n");
}

std::string rigidity_cells_text(const RigidityCell& cell, std::string (*text)(double, int)) {
  return pad_left(text(cell.previous, 3), 7) + pad_left(text(cell.pairs, 2), 6) +
         pad_left(text(cell.rank, 1), 5);
}

std::string rigidity_text(const ModelRigidity& rigidity, const TextStyle& style) {
  std::string text = header_text(rigidity, style) + "\n" + prompts_text(rigidity, style);
  text +=
      "prev: cosine with the layer before, mean over prompts; pairs: mean cosine\n"
      "between prompts; rank: effective rank of the prompts' states; ME: the ME layer\n\n";
  text += (rigidity.named.token ? "the token\n" : "the massive token\n") + table(rigidity, false);
  if (rigidity.result.sites.front().baseline) {
    text += "the baseline token\n" + table(rigidity, true);
  }
  text += wrap(verdict(rigidity), 80, 0) + "\n";
  return rigidity.masked ? text + "\n" + rigidity_masked_text(rigidity) : text;
}

}  // namespace onset::app
