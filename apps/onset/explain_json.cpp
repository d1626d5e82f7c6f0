// The JSON of `onset explain`.

#include <utility>

#include "explain_report.h"
#include "masked.h"
#include "onset/massive/explain_json.h"
#include "onset/massive/stage_json.h"

namespace onset::app {
namespace {

OrderedJson prompt_json(const EncodedPrompt& encoded, const PromptScan& scanned) {
  OrderedJson pieces = OrderedJson::array();
  for (const auto& piece : encoded.pieces) pieces.push_back(valid_utf8(piece));
  return {{"text", valid_utf8(encoded.text)},
          {"ids", encoded.ids},
          {"pieces", std::move(pieces)},
          {"bos_added", encoded.bos_added},
          {"me_layer", scanned.me_layer ? OrderedJson(*scanned.me_layer) : OrderedJson(nullptr)},
          {"stages", stages_json(scanned.stages)}};
}

OrderedJson text_json(const std::optional<TextUsed>& text) {
  if (!text) return nullptr;
  const auto& windows = text->windows;
  return {{"source", valid_utf8(text->source)},
          {"tokens", text->tokens},
          {"shortened", text->shortened},
          {"window", windows.window},
          {"stride", windows.stride == 0 ? windows.window - (windows.bos ? 1 : 0) : windows.stride},
          {"window_bos", windows.bos ? OrderedJson(*windows.bos) : OrderedJson("none")},
          {"sink_sample_length", text->sample_length},
          {"sink_samples", text->samples}};
}

// Pieces beside the ids of vocabulary tokens, where there is a tokenizer.
void add_pieces(OrderedJson& tokens, const std::map<std::int64_t, std::string>& pieces) {
  for (auto& token : tokens) {
    const auto found = pieces.find(token["id"].get<std::int64_t>());
    token["piece"] =
        found == pieces.end() ? OrderedJson(nullptr) : OrderedJson(valid_utf8(found->second));
  }
}

OrderedJson words_json(const ExplainWords& words) {
  return {{"target", words.target}, {"norm", words.norm},
          {"ffn", words.ffn},       {"factorial", words.factorial},
          {"fall", words.fall},     {"vocabulary", words.vocabulary},
          {"dose", words.dose}};
}

// What was found, the same fields without and with a mask.
OrderedJson found_json(const Explanation& explanation) {
  const auto& result = explanation.result;
  OrderedJson prompts = OrderedJson::array();
  for (std::size_t i = 0; i < explanation.prompts.size(); ++i) {
    prompts.push_back(prompt_json(explanation.prompts[i], explanation.scan.prompts[i]));
  }
  auto vocabulary = vocabulary_json(result.vocabulary);
  if (result.vocabulary) {
    add_pieces(vocabulary["small"], explanation.pieces);
    add_pieces(vocabulary["largest"], explanation.pieces);
  }
  return {{"target", target_json(result.target, explanation.scan)},
          {"text", text_json(explanation.text)},
          {"summary", words_json(explain_words(explanation, {.utf8 = true, .colour = false}))},
          {"norm", norm_json(result.norm)},
          {"ffn", ffn_json(result.ffn)},
          {"factorial", factorial_json(result.factorial)},
          {"fall", fall_json(result.fall)},
          {"vocabulary", std::move(vocabulary)},
          {"dose", dose_json(result.dose)},
          {"prompts", std::move(prompts)}};
}

}  // namespace

OrderedJson explanation_json(const Explanation& explanation) {
  OrderedJson json{{"model", explanation.model}};
  json.update(found_json(explanation));
  json["wemask"] = wemask_json(explanation.mask);
  json["masked"] =
      explanation.masked ? found_json(masked_explanation(explanation)) : OrderedJson(nullptr);
  return json;
}

}  // namespace onset::app
