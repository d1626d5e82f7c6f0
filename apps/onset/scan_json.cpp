// The JSON and CSV of `onset scan`.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "masked.h"
#include "onset/base/error.h"
#include "onset/massive/stage_json.h"
#include "scan_report.h"
#include "text.h"

namespace onset::app {
namespace {

template <typename Number>
OrderedJson number_or_null(const std::optional<Number>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson text_or_null(const std::optional<std::string>& value) {
  return value ? OrderedJson(valid_utf8(*value)) : OrderedJson(nullptr);
}

OrderedJson entries_json(const std::vector<StateEntry>& entries) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& entry : entries) {
    rows.push_back(
        {{"token", entry.token}, {"dim", entry.dim}, {"value", float_or_null(entry.value)}});
  }
  return rows;
}

OrderedJson layer_json(const LayerStatistics& layer) {
  return {{"layer", layer.layer},
          {"max_abs", float_or_null(std::abs(layer.largest.value))},
          {"token", layer.largest.token},
          {"dim", layer.largest.dim},
          {"value", float_or_null(layer.largest.value)},
          {"median_abs", float_or_null(layer.median_abs)},
          {"ratio", finite_or_null(layer.ratio())},
          {"massive", layer.massive},
          {"massive_count", layer.massive_count},
          {"massive_entries", entries_json(layer.massive_entries)},
          {"top", entries_json(layer.top)}};
}

OrderedJson prompt_json(const PromptScan& prompt, const EncodedPrompt& encoded) {
  OrderedJson pieces = OrderedJson::array();
  for (const auto& piece : encoded.pieces) pieces.push_back(valid_utf8(piece));
  OrderedJson layers = OrderedJson::array();
  for (const auto& layer : prompt.layers) layers.push_back(layer_json(layer));
  return {{"text", valid_utf8(prompt.text)},
          {"ids", prompt.ids},
          {"pieces", std::move(pieces)},
          {"bos_added", encoded.bos_added},
          {"beyond_context", encoded.beyond_context},
          {"me_layer", number_or_null(prompt.me_layer)},
          {"last_massive_layer", number_or_null(prompt.last_massive_layer)},
          {"note", text_or_null(prompt.note)},
          {"largest", largest_json(prompt)},
          {"stages", stages_json(prompt.stages)},
          {"layers", std::move(layers)}};
}

OrderedJson massive_dim_rows_json(const ScanResult& result) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& row : massive_dim_rows(result)) {
    rows.push_back({{"dim", row.dim},
                    {"prompts", row.prompts},
                    {"layers", row.layers},
                    {"first_layer", row.first_layer},
                    {"last_layer", row.last_layer},
                    {"value", float_or_null(row.value)},
                    {"value_layer", row.value_layer}});
  }
  return rows;
}

// "first", or position, id and piece.
OrderedJson massive_tokens_json(const ModelScan& scan, const ScanResult& result) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& token : result.massive_tokens) {
    if (token.first) {
      rows.push_back("first");
      continue;
    }
    OrderedJson piece = nullptr;
    for (const auto& prompt : scan.prompts) {
      const auto at = static_cast<std::size_t>(token.position);
      if (at < prompt.pieces.size() && prompt.ids[at] == token.id) {
        piece = valid_utf8(prompt.pieces[at]);
        break;
      }
    }
    rows.push_back({{"position", token.position}, {"id", token.id}, {"piece", std::move(piece)}});
  }
  return rows;
}

OrderedJson candidate_json(const std::optional<Candidate>& candidate) {
  if (!candidate) return nullptr;
  return {{"prompt", candidate->prompt},
          {"layer", candidate->layer},
          {"token", candidate->token},
          {"dim", candidate->dim},
          {"value", float_or_null(candidate->value)},
          {"ratio", finite_or_null(candidate->ratio)}};
}

OrderedJson experts_json(const std::vector<ExpertId>& experts) {
  OrderedJson rows = OrderedJson::array();
  for (const ExpertId& id : experts) rows.push_back({{"layer", id.layer}, {"expert", id.expert}});
  return rows;
}

// What a scan found, the same fields without and with a mask.
OrderedJson found_json(const ModelScan& scan, const ScanResult& result) {
  const bool relative = result.options.rule == ScanRule::relative;
  OrderedJson prompts = OrderedJson::array();
  for (std::size_t i = 0; i < result.prompts.size(); ++i) {
    prompts.push_back(prompt_json(result.prompts[i], scan.prompts[i]));
  }
  const auto disagreement = result.rule_disagreement.empty()
                                ? std::nullopt
                                : std::optional<std::string>(result.rule_disagreement);
  return {{"rule",
           {{"name", relative ? "relative" : "absolute"},
            {"min_abs", result.options.min_abs},
            {"min_ratio", result.options.min_ratio}}},
          {"without_experts", experts_json(result.options.without_experts)},
          {"me_layer", number_or_null(result.me_layer)},
          {"agreement", finite_or_null(result.agreement)},
          {"last_massive_layer", number_or_null(result.last_massive_layer)},
          {"massive_dims", result.massive_dims},
          {"massive_dim_rows", massive_dim_rows_json(result)},
          {"massive_tokens", massive_tokens_json(scan, result)},
          {"candidate", candidate_json(result.candidate)},
          {"note", text_or_null(result.note)},
          {"rule_disagreement", text_or_null(disagreement)},
          {"stages", stages_json(result.stages)},
          {"prompts", std::move(prompts)}};
}

std::string float_text(float value) {
  char digits[64];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return {digits, end};
}

// A CSV field, quoted where it has to be (RFC 4180).
std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + '"';
}

std::string csv_rows(const std::string& path, const ScanResult& result, const char* end) {
  std::string rows;
  for (std::size_t i = 0; i < result.prompts.size(); ++i) {
    const auto& prompt = result.prompts[i];
    for (const auto& layer : prompt.layers) {
      const auto& largest = layer.largest;
      const auto me = prompt.me_layer ? str_cat(*prompt.me_layer) : std::string();
      rows += str_cat(csv_text(path), ",", i, ",", layer.layer, ",",
                      float_text(std::abs(largest.value)), ",", largest.token, ",", largest.dim,
                      ",", float_text(largest.value), ",", float_text(layer.median_abs), ",",
                      shortest(layer.ratio()), ",", layer.massive ? 1 : 0, ",", layer.massive_count,
                      ",", me, end);
    }
  }
  return rows;
}

}  // namespace

OrderedJson scan_json(const ModelScan& scan) {
  if (!scan.result) {
    return {
        {"model", scan.model},
        {"error",
         {{"message", valid_utf8(scan.failure.message)}, {"hint", valid_utf8(scan.failure.hint)}}}};
  }
  OrderedJson json{{"model", scan.model}};
  json.update(found_json(scan, *scan.result));
  json["wemask"] = wemask_json(scan.mask);
  json["masked"] = scan.masked ? found_json(scan, *scan.masked) : OrderedJson(nullptr);
  return json;
}

std::string scan_csv(const std::vector<ModelScan>& scans) {
  const bool masks = std::any_of(scans.begin(), scans.end(),
                                 [](const ModelScan& scan) { return scan.mask.has_value(); });
  std::string rows = str_cat(
      "model,prompt,layer,max_abs,token,dim,value,median_abs,ratio,massive,massive_count,me_layer",
      masks ? ",masked" : "", "\n");
  for (const auto& scan : scans) {
    if (!scan.result) continue;
    rows += csv_rows(scan.path, *scan.result, masks ? ",0\n" : "\n");
    if (scan.masked) rows += csv_rows(scan.path, *scan.masked, ",1\n");
  }
  return rows;
}

}  // namespace onset::app
