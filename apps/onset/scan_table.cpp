// The tables of `onset scan`, at most 80 columns wide.

#include <algorithm>
#include <cmath>
#include <utility>

#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "scan_report.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr std::size_t most_prompt_rows = 20;

std::string emphasised(const std::string& text, const TextStyle& style) {
  return style.colour ? "\x1b[1;31m" + text + "\x1b[0m" : text;
}

// Joins with ", ", the rest left out after a few.
template <typename Values>
std::string listed(const Values& values, std::size_t most) {
  std::string text;
  std::size_t count = 0;
  for (const auto& value : values) {
    if (count == most) return text + ", ..";
    text += str_cat(count++ == 0 ? "" : ", ", value);
  }
  return text.empty() ? "none" : text;
}

// "0 "My"": position and piece, or the id where there is no tokenizer.
std::string token_text(const EncodedPrompt& prompt, std::int64_t token, std::size_t width,
                       const TextStyle& style) {
  const auto at = static_cast<std::size_t>(token);
  const std::string position = str_cat(token);
  if (at < prompt.shown.size()) {
    const auto room = width - std::min(width, position.size() + 3);
    const auto piece = fit(printable(prompt.shown[at], style.utf8), room, style.utf8);
    return position + " \"" + piece + "\"";
  }
  return at < prompt.ids.size() ? str_cat(position, " id ", prompt.ids[at]) : position;
}

std::string header_text(const ModelScan& scan, const TextStyle& style) {
  const auto& model = scan.model;
  const auto& result = *scan.result;
  const std::string bos = scan.bos ? str_cat(*scan.bos) : "none";
  std::string text =
      "model   " +
      wrap(str_cat(printable(scan.path, style.utf8), ": ", model["architecture"].get<std::string>(),
                   ", ", model["layers"].dump(), " layers, hidden ", model["hidden"].dump(),
                   ", BOS ", bos, adapter_words(model["adapter"])),
           80, 8) +
      "\n";
  std::string rule =
      str_cat("massive: |x| > ", shortest(result.options.min_ratio), " times the layer's median");
  rule += result.options.rule == ScanRule::absolute
              ? str_cat(" and > ", shortest(result.options.min_abs))
              : std::string(", lasting a quarter of the layers");
  text += "rule    " + wrap(rule, 80, 8) + "\n";
  std::string off;
  for (const ExpertId& id : scan.result->options.without_experts) {
    off += str_cat(off.empty() ? "" : ", ", "expert ", id.expert, " of layer ", id.layer);
  }
  if (!off.empty()) text += "without " + wrap(off, 80, 8) + "\n";
  return text + "\n";
}

std::string largest_text(const PromptScan& prompt) {
  float largest = 0;
  for (const auto& layer : prompt.layers) {
    largest = std::max(largest, std::abs(layer.largest.value));
  }
  return compact(largest);
}

// One row a prompt: how it begins, and what was found in it.
std::string prompts_text(const ModelScan& scan, const TextStyle& style) {
  std::string text =
      "prompts; ME: first layer with a massive entry, last: the last such layer\n"
      "prompt tokens  first ids                ME last   max |x|  text\n";
  const auto& prompts = scan.result->prompts;
  for (std::size_t i = 0; i < std::min(prompts.size(), most_prompt_rows); ++i) {
    const auto& prompt = prompts[i];
    std::string first;
    for (std::size_t t = 0; t < std::min<std::size_t>(4, prompt.ids.size()); ++t) {
      first += str_cat(t == 0 ? "" : " ", prompt.ids[t]);
    }
    const auto layer = [](const std::optional<std::int64_t>& value) {
      return value ? str_cat(*value) : std::string("-");
    };
    const auto note = prompt.note ? "(" + *prompt.note + ") " : std::string();
    const auto& pieces = scan.prompts[i].shown;
    const auto text_of = prompt.text.empty() ? join(pieces, "") : prompt.text;
    const auto shown = printable(note + (text_of.empty() ? "(ids)" : text_of), style.utf8);
    text += pad_left(str_cat(i), 6) + pad_left(str_cat(prompt.ids.size()), 7) + "  " +
            pad_right(fit(first, 23, style.utf8), 23) + pad_left(layer(prompt.me_layer), 4) +
            pad_left(layer(prompt.last_massive_layer), 5) + pad_left(largest_text(prompt), 10) +
            "  " + fit(trim(shown), 21, style.utf8) + "\n";
  }
  if (prompts.size() > most_prompt_rows) {
    text += str_cat("  and ", prompts.size() - most_prompt_rows, " more (--json lists all)\n");
  }
  return text + "\n";
}

// What the bars span: from the smallest median, which is the size of an ordinary entry, to the
// largest entry.
struct BarScale {
  double low = 0;
  double high = 0;

  // By its logarithm.
  [[nodiscard]] double fraction(double magnitude) const {
    if (!(magnitude > low)) return 0;
    return std::log(magnitude / low) / std::log(high / low);
  }
};

BarScale bar_scale(const PromptScan& prompt) {
  double low = HUGE_VAL;
  double high = 0;
  for (const auto& layer : prompt.layers) {
    if (layer.median_abs > 0) low = std::min(low, static_cast<double>(layer.median_abs));
    high = std::max(high, static_cast<double>(std::abs(layer.largest.value)));
  }
  // Where every median is 0, six decades stand for the span.
  if (!std::isfinite(low)) low = high / 1e6;
  return {low, high};
}

std::string layers_text(const ModelScan& scan, const TextStyle& style) {
  const auto shown = shown_prompt(*scan.result);
  const auto& prompt = scan.result->prompts[shown];
  const auto scale = bar_scale(prompt);
  std::string text =
      str_cat("layers of prompt ", shown, "; the bar is log |x| from ", compact(scale.low), " to ",
              compact(scale.high), "\nME: the layer where they are born, *: a massive entry\n");
  text += "layer largest x  token               dim   median      ratio\n";
  for (const auto& layer : prompt.layers) {
    const auto& largest = layer.largest;
    const bool born = prompt.me_layer == layer.layer;
    const std::string mark = born ? "ME" : (layer.massive ? "* " : "  ");
    const std::string row =
        pad_left(str_cat(layer.layer), 5) + pad_left(compact(largest.value), 10) + "  " +
        pad_right(token_text(scan.prompts[shown], largest.token, 16, style), 16) +
        pad_left(str_cat(largest.dim), 7) + pad_left(compact(layer.median_abs), 9) +
        pad_left(compact(layer.ratio()), 11) + " " + mark;
    text += (born ? emphasised(row, style) : row) + " " +
            bar(scale.fraction(std::abs(largest.value)), 16, style.utf8) + "\n";
  }
  return text + "\n";
}

std::string stages_text(const ModelScan& scan, const TextStyle& style) {
  const auto shown = shown_prompt(*scan.result);
  const auto& stages = scan.result->prompts[shown].stages;
  if (stages.empty()) {
    return "stages: none; no layer doubles or halves an entry above " +
           shortest(scan.result->options.min_abs) + "\n\n";
  }
  const auto token = token_text(scan.prompts[shown], stages.front().token, 14, style);
  std::string text = "stages of token " + token +
                     ": layers that at least double or halve its largest |x|;\n"
                     "in the dim named, x before + attention + FFN = x after\n";
  text += "           largest |x| of token         x in that dim\n";
  text += "layer         before    after    dim    before attention       FFN     after\n";
  for (const auto& stage : stages) {
    text += pad_left(str_cat(stage.layer), 5) +
            (stage.kind == StageKind::rise ? "  rise" : "  fall") +
            pad_left(compact(stage.before), 9) + pad_left(compact(stage.after), 9) +
            pad_left(str_cat(stage.dim), 7) + pad_left(compact(stage.resid_pre), 10) +
            pad_left(part_text(stage.attn_out), 10) + pad_left(part_text(stage.ffn_out), 10) +
            pad_left(compact(stage.resid_post()), 10) + "\n";
    text += experts_text(stage.experts, stage.shared_out);
  }
  return text + "\n";
}

// The first rise at the ME layer of the prompt that stands for the model.
const Stage* birth(const ScanResult& result) {
  const auto& prompt = result.prompts[shown_prompt(result)];
  for (const auto& stage : prompt.stages) {
    if (stage.kind == StageKind::rise && prompt.me_layer == stage.layer) return &stage;
  }
  return nullptr;
}

std::string massive_dims_text(const ScanResult& result) {
  constexpr std::size_t most_rows = 8;
  const auto rows = massive_dim_rows(result);
  std::string text = "massive dims  prompts  layers in any prompt   largest x\n";
  for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i) {
    const auto& row = rows[i];
    const auto span = row.layers == 1
                          ? str_cat("1 (", row.first_layer, ")")
                          : str_cat(row.layers, " (", row.first_layer, " to ", row.last_layer, ")");
    text += pad_left(str_cat(row.dim), 12) +
            pad_left(str_cat(row.prompts, " of ", result.prompts.size()), 9) + "  " +
            pad_right(span, 18) + pad_left(compact(row.value), 14) + " at layer " +
            str_cat(row.value_layer) + "\n";
  }
  if (rows.size() > most_rows) {
    text += str_cat("  and ", rows.size() - most_rows, " more (--json lists all)\n");
  }
  return text;
}

std::string massive_tokens_text(const ScanResult& result) {
  std::vector<std::string> tokens;
  for (const auto& token : result.massive_tokens) {
    tokens.push_back(token.first ? "first" : str_cat("id ", token.id, " at ", token.position));
  }
  return listed(tokens, 3);
}

// The most common first.
std::string dims_text(const ScanResult& result) {
  std::vector<std::int64_t> dims;
  for (const auto& row : massive_dim_rows(result)) dims.push_back(row.dim);
  return listed(dims, 3);
}

std::string result_row(const ModelScan& scan, const ScanResult& result, const TextStyle& style) {
  const auto layer = [](const std::optional<std::int64_t>& value) {
    return value ? str_cat(*value) : std::string("-");
  };
  const Stage* stage = birth(result);
  const std::string share = stage != nullptr && stage->ffn_share ? percent(*stage->ffn_share) : "-";
  const auto& shown = result.prompts[shown_prompt(result)];
  return pad_left(scan.model["layers"].dump(), 7) + pad_left(layer(result.me_layer), 4) +
         pad_left(layer(result.last_massive_layer), 5) + pad_left(largest_text(shown), 10) +
         pad_left(share, 9) + "  " +
         fit(result.massive_dims.empty() ? (result.note ? *result.note : "no ME layer")
                                         : dims_text(result),
             15, style.utf8) +
         "\n";
}

std::string model_row(const ModelScan& scan, const TextStyle& style) {
  // The end of a path tells models apart.
  auto name = std::filesystem::path(scan.path).filename().string();
  if (name.empty()) name = scan.path;
  std::string text = pad_right(fit(printable(name, style.utf8), 26, style.utf8), 26);
  if (!scan.result) return text + "  failed: see the message\n";
  text += result_row(scan, *scan.result, style);
  if (scan.masked) text += pad_right("  masked", 26) + result_row(scan, *scan.masked, style);
  return text;
}

}  // namespace

std::size_t shown_prompt(const ScanResult& result) {
  for (std::size_t i = 0; i < result.prompts.size(); ++i) {
    if (result.me_layer && result.prompts[i].me_layer == result.me_layer) return i;
  }
  if (!result.candidate) return 0;
  const auto prompt = static_cast<std::size_t>(result.candidate->prompt);
  return prompt < result.prompts.size() ? prompt : 0;
}

std::string scan_text(const ModelScan& scan, const TextStyle& style) {
  const auto& result = *scan.result;
  std::string text = header_text(scan, style) + prompts_text(scan, style) +
                     layers_text(scan, style) + stages_text(scan, style) + written_text(scan);
  if (result.me_layer) {
    text += massive_dims_text(result) + "massive tokens: " + massive_tokens_text(result) + "\n\n";
  }
  text += scan_verdict(scan, style);
  return scan.masked ? text + "\n" + scan_masked_text(scan) : text;
}

std::string models_text(const std::vector<ModelScan>& scans, const TextStyle& style) {
  std::string text =
      "ME: the layer where massive activations are born, last: the last massive layer,\n"
      "FFN: its share of what the ME layer adds\n"
      "model                      layers  ME last   max |x|      FFN  massive dims\n";
  for (const auto& scan : scans) text += model_row(scan, style);
  return text;
}

}  // namespace onset::app
