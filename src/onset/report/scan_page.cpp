#include "onset/report/scan_page.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "onset/base/error.h"
#include "onset/report/html.h"
#include "onset/report/scan_figures.h"

namespace onset {
namespace {

// Limits that keep the page small whatever the prompts are.
constexpr std::size_t most_named_tokens = 2048;  // with text in the hover labels
constexpr std::size_t most_chips = 48;
constexpr std::size_t most_named_dims = 4;
constexpr std::size_t most_prompt_rows = 200;
constexpr std::size_t token_letters = 24;
constexpr std::size_t prompt_letters = 600;
constexpr std::size_t row_letters = 120;

const PromptScan& drawn(const ScanPageInput& input) { return input.scan.prompts[input.prompt]; }

std::string layer_words(const std::optional<std::int64_t>& layer) {
  return layer ? str_cat(*layer) : "none";
}

const Stage* birth(const PromptScan& prompt) {
  for (const auto& stage : prompt.stages) {
    if (stage.kind == StageKind::rise && stage.layer == prompt.me_layer) return &stage;
  }
  return nullptr;
}

// The tokens with their ids, the massive ones marked.
Section prompt_section(const ScanPageInput& input) {
  const PromptScan& prompt = drawn(input);
  const auto& alone = input.states.view.alone;
  const auto& layer = prompt.layers[static_cast<std::size_t>(input.states.view.layer)];
  std::string html;
  if (!prompt.text.empty()) {
    html += str_cat("<p>\"", html_escape(shortened(valid_utf8(prompt.text), prompt_letters)),
                    "\"</p>\n");
  }
  html += "<ul class=\"tokens\">\n";
  for (std::size_t t = 0; t < std::min(prompt.ids.size(), most_chips); ++t) {
    const auto token = static_cast<std::int64_t>(t);
    const bool massive =
        prompt.me_layer &&
        (layer.largest.token == token ||
         (std::find(alone.begin(), alone.end(), token) != alone.end() &&
          std::any_of(layer.massive_entries.begin(), layer.massive_entries.end(),
                      [&](const StateEntry& entry) { return entry.token == token; })));
    const std::string text =
        t < input.tokens.size() ? shortened(valid_utf8(input.tokens[t]), token_letters) : "";
    html += str_cat("<li", massive ? " class=\"massive\"><b>" : "><b>", html_escape(text),
                    "</b><small>", t, ": id ", prompt.ids[t], "</small></li>\n");
  }
  html += "</ul>\n<p class=\"remark\">";
  if (prompt.ids.size() > most_chips) {
    html += str_cat("The first ", most_chips, " of ", prompt.ids.size(), " tokens. ");
  }
  html +=
      str_cat("Each box is a token with its position and id",
              prompt.me_layer ? "; the massive one is marked" : "",
              ". BOS put before: ", html_escape(input.bos),
              ". The first token usually carries the massive activation, so a BOS that is added "
              "or lost changes the numbers.");
  if (input.scan.prompts.size() > 1) {
    html += str_cat(" The pictures are of prompt ", input.prompt,
                    "; all prompts are in the table at the end.");
  }
  return {.id = "prompt", .title = "The prompt", .html = html + "</p>\n"};
}

Section prompts_section(const ScanPageInput& input) {
  const auto& prompts = input.scan.prompts;
  Table table{.caption = {},
              .header = {"prompt", "tokens", "first ids", "ME layer", "last massive", "largest |x|",
                         "text"},
              .numeric = {true, true, false, true, true, true, false},
              .rows = {}};
  for (std::size_t p = 0; p < std::min(prompts.size(), most_prompt_rows); ++p) {
    const PromptScan& prompt = prompts[p];
    std::string ids;
    for (std::size_t t = 0; t < std::min<std::size_t>(prompt.ids.size(), 4); ++t) {
      ids += str_cat(t == 0 ? "" : " ", prompt.ids[t]);
    }
    float largest = 0;
    for (const auto& layer : prompt.layers) {
      largest = std::max(largest, std::fabs(layer.largest.value));
    }
    const std::string note = prompt.note ? str_cat("(", *prompt.note, ") ") : "";
    table.rows.push_back({str_cat(p), str_cat(prompt.ids.size()), ids, layer_words(prompt.me_layer),
                          layer_words(prompt.last_massive_layer), number_text(largest),
                          note + shortened(valid_utf8(prompt.text), row_letters)});
  }
  if (prompts.size() > most_prompt_rows) {
    table.caption = str_cat("The first ", most_prompt_rows, " of ", prompts.size(),
                            " prompts; scan --json lists all");
  }
  return {.id = "prompts", .title = "All prompts", .tables = {table}};
}

// "Switched off, so that they add nothing: expert 5 of layer 1." Empty where none is.
std::string switched_off_words(const ScanOptions& options) {
  std::string names;
  for (const ExpertId& id : options.without_experts) {
    names += str_cat(names.empty() ? "" : ", ", "expert ", id.expert, " of layer ", id.layer);
  }
  if (names.empty()) return {};
  return str_cat("This scan is of the model with experts switched off, so that they add nothing: ",
                 names, ".");
}

Section method_section(const ScanPageInput& input) {
  return {
      .id = "method",
      .title = "How this was measured",
      .facts = input.facts,
      .remark =
          "Layers, tokens and dimensions count from 0. x is the residual stream after a "
          "layer, before any later norm; numbers are float32, those of the surfaces are "
          "rounded to five digits. The ME layer is the first after which an entry is massive. A "
          "large entry is not yet a cause: the pictures of the scan show where it appears and "
          "which part wrote it, not what it does. The thresholds are "
          "conventions; look at the stages too. Definitions: docs/scan.md and "
          "docs/report.md of onset. Massive activations: Sun et al., arXiv 2402.17762; the ME "
          "layer: arXiv 2605.08504. Pictures by plotly.js (MIT licence), contained in this "
          "file."};
}

OrderedJson shared_data(const ScanPageInput& input) {
  OrderedJson tokens = OrderedJson::array();
  for (std::size_t t = 0; t < std::min(input.tokens.size(), most_named_tokens); ++t) {
    tokens.push_back(shortened(valid_utf8(input.tokens[t]), token_letters));
  }
  const auto& ids = drawn(input).ids;
  const auto named = static_cast<std::ptrdiff_t>(std::min(ids.size(), most_named_tokens));
  return {{"tokens", std::move(tokens)},
          {"ids", std::vector<std::int64_t>(ids.begin(), ids.begin() + named)}};
}

// "massive in some prompt: 247, 507", where there are several.
std::string dims_words(const ScanPageInput& input) {
  const auto& dims = input.scan.massive_dims;
  if (dims.size() < 2) return {};
  if (dims.size() > most_named_dims) return str_cat("one of ", dims.size(), " massive ones");
  std::string names;
  for (const auto dim : dims) names += str_cat(names.empty() ? "" : ", ", dim);
  return str_cat(input.scan.prompts.size() > 1 ? "massive in some prompt: " : "massive: ", names);
}

}  // namespace

std::vector<Fact> scan_highlights(const ScanPageInput& input) {
  const PromptScan& prompt = drawn(input);
  const PictureView& view = input.states.view;
  const LayerStatistics& layer = prompt.layers[static_cast<std::size_t>(view.layer)];
  const auto count = prompt.layers.size();
  std::vector<Fact> facts;
  if (prompt.me_layer) {
    facts.push_back(
        {"ME layer", str_cat(view.layer), str_cat("block ", view.layer + 1, " of ", count)});
  } else {
    facts.push_back({"ME layer", "none", str_cat("nearest: layer ", view.layer)});
  }
  facts.push_back({"largest entry there", number_text(std::fabs(layer.largest.value)),
                   str_cat(number_text(layer.ratio()), " x the median")});
  facts.push_back({"dimension", str_cat(layer.largest.dim), dims_words(input)});
  const auto at = static_cast<std::size_t>(layer.largest.token);
  facts.push_back({"token", str_cat(at),
                   at < input.tokens.size()
                       ? str_cat("\"", shortened(valid_utf8(input.tokens[at]), token_letters), "\"")
                       : str_cat("id ", prompt.ids[at])});
  if (const Stage* stage = birth(prompt)) {
    const bool ffn = std::fabs(stage->ffn_out) >= std::fabs(stage->attn_out);
    const auto& share = ffn ? stage->ffn_share : stage->attn_share;
    facts.push_back(
        {"written by",
         ffn && !main_expert(*stage).empty() ? "FFN, " + main_expert(*stage)
                                             : std::string(ffn ? "FFN" : "attention"),
         share ? number_text(std::round(*share * 1000) / 10) + " % of the change" : std::string()});
  }
  if (prompt.me_layer) {
    facts.push_back({"last massive layer", layer_words(prompt.last_massive_layer), ""});
  }
  const auto prompts = input.scan.prompts.size();
  if (prompts > 1) {
    const auto agreeing = std::lround(input.scan.agreement * static_cast<double>(prompts));
    facts.push_back({"prompts that agree", str_cat(agreeing, " of ", prompts), ""});
  }
  return facts;
}

Page scan_page(const ScanPageInput& input) {
  const PromptScan& prompt = drawn(input);
  const PictureView& view = input.states.view;
  Page page{.kind = "onset scan: massive activations",
            .heading = input.model,
            .lead = input.verdict,
            .highlights = scan_highlights(input),
            .sections = {},
            .shared = shared_data(input)};
  if (const auto words = switched_off_words(input.scan.options); !words.empty()) {
    page.lead.insert(page.lead.begin(), words);
  }
  page.sections.push_back(prompt_section(input));
  page.sections.push_back(
      {.id = "by-layer", .title = "Magnitude by layer", .figures = {magnitude_figure(input)}});
  page.sections.push_back({.id = "over-tokens",
                           .title = str_cat("Every token and dimension after layer ", view.layer,
                                            prompt.me_layer ? ", the ME layer" : ""),
                           .figures = {token_figure(input)}});
  page.sections.push_back(
      {.id = "over-layers",
       .title = str_cat("The state of ", drawn_token(input), " through the layers"),
       .figures = {layer_figure(input)}});
  Section parts{.id = "parts", .title = "Which part writes it"};
  if (prompt.stages.empty()) {
    parts.text = {str_cat("No layer makes the largest entry double or halve above ",
                          number_text(input.scan.options.min_abs), ".")};
  } else {
    parts.figures = {stage_figure(input)};
  }
  page.sections.push_back(std::move(parts));
  if (input.scan.prompts.size() > 1) page.sections.push_back(prompts_section(input));
  page.sections.push_back(method_section(input));
  return page;
}

}  // namespace onset
