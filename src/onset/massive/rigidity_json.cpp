#include "onset/massive/rigidity_json.h"

#include <utility>

namespace onset {
namespace {

// States are float32: more digits would be noise.
OrderedJson number(double value) { return float_or_null(static_cast<float>(value)); }

OrderedJson matrix_json(const CosineMatrix& matrix) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& values : matrix) {
    OrderedJson row = OrderedJson::array();
    for (const double value : values) row.push_back(number(value));
    rows.push_back(std::move(row));
  }
  return rows;
}

OrderedJson state_json(const StateRigidity& state) {
  OrderedJson layers = OrderedJson::array();
  for (std::size_t l = 0; l < state.prompts.size(); ++l) {
    layers.push_back(
        {{"layer", l},
         {"previous_cosine", l > 0 ? number(state.mean_layers[l][l - 1]) : OrderedJson(nullptr)},
         {"mean_prompt_cosine", number(state.mean_prompts[l])},
         {"min_prompt_cosine", number(state.min_prompts[l])},
         {"effective_rank", number(state.effective_rank[l])},
         {"prompt_cosine", matrix_json(state.prompts[l])}});
  }
  return {{"layer_cosine", matrix_json(state.mean_layers)}, {"layers", std::move(layers)}};
}

}  // namespace

OrderedJson rigidity_sites_json(const RigidityResult& result) {
  OrderedJson sites = OrderedJson::array();
  for (const auto& site : result.sites) {
    sites.push_back(
        {{"site", site_kind_name(site.site)},
         {"token", state_json(site.token)},
         {"baseline", site.baseline ? state_json(*site.baseline) : OrderedJson(nullptr)}});
  }
  return sites;
}

}  // namespace onset
