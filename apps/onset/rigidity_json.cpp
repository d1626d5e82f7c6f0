// The JSON of `onset rigidity`.

#include <utility>

#include "masked.h"
#include "onset/massive/rigidity_json.h"
#include "rigidity_report.h"

namespace onset::app {
namespace {

template <typename Number>
OrderedJson number_or_null(const std::optional<Number>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson prompts_json(const ModelRigidity& rigidity) {
  OrderedJson rows = OrderedJson::array();
  for (std::size_t i = 0; i < rigidity.compared.size(); ++i) {
    const std::size_t p = rigidity.compared[i];
    const auto& encoded = rigidity.prompts[p];
    const auto& prompt = rigidity.result.prompts[i];
    OrderedJson pieces = OrderedJson::array();
    for (const auto& piece : encoded.pieces) pieces.push_back(valid_utf8(piece));
    rows.push_back({{"text", valid_utf8(encoded.text)},
                    {"ids", encoded.ids},
                    {"pieces", std::move(pieces)},
                    {"bos_added", encoded.bos_added},
                    {"me_layer", number_or_null(rigidity.scan.prompts[p].me_layer)},
                    {"token", prompt.token},
                    {"baseline_token", number_or_null(prompt.baseline)}});
  }
  return rows;
}

OrderedJson left_out_json(const ModelRigidity& rigidity) {
  OrderedJson rows = OrderedJson::array();
  std::size_t next = 0;
  for (std::size_t p = 0; p < rigidity.prompts.size(); ++p) {
    if (next < rigidity.compared.size() && rigidity.compared[next] == p) {
      ++next;
      continue;
    }
    rows.push_back({{"prompt", p},
                    {"text", valid_utf8(rigidity.prompts[p].text)},
                    {"me_layer", number_or_null(rigidity.scan.prompts[p].me_layer)}});
  }
  return rows;
}

}  // namespace

OrderedJson rigidity_json(const ModelRigidity& rigidity) {
  OrderedJson masked = nullptr;
  if (rigidity.masked) masked = {{"sites", rigidity_sites_json(*rigidity.masked)}};
  return {{"model", rigidity.model},
          {"me_layer", number_or_null(rigidity.scan.me_layer)},
          {"last_massive_layer", number_or_null(rigidity.scan.last_massive_layer)},
          {"named_token", number_or_null(rigidity.named.token)},
          {"named_baseline_token", number_or_null(rigidity.named.baseline)},
          {"prompts", prompts_json(rigidity)},
          {"distinct_prefixes", distinct_prefixes(rigidity.result.prompts)},
          {"left_out", left_out_json(rigidity)},
          {"sites", rigidity_sites_json(rigidity.result)},
          {"wemask", wemask_json(rigidity.mask)},
          {"masked", std::move(masked)}};
}

}  // namespace onset::app
