#include "onset/train/watch.h"

#include "onset/wemask/mask.h"

namespace onset {

OrderedJson watch_line(const Policy& policy, const std::vector<ScanPrompt>& prompts,
                       std::int64_t step) {
  const auto hooks = policy.mask() ? masking(*policy.mask(), policy.model()) : nullptr;
  const ScanResult found = scan(policy.model(), prompts, {}, {}, hooks.get());
  OrderedJson layers = OrderedJson::array();
  for (const LayerStatistics& layer : found.prompts.front().layers) {
    layers.push_back({{"max_abs", finite_or_null(std::abs(layer.largest.value))},
                      {"median_abs", finite_or_null(layer.median_abs)},
                      {"ratio", finite_or_null(layer.ratio())}});
  }
  return {{"step", step},
          {"me_layer", found.me_layer ? OrderedJson(*found.me_layer) : OrderedJson(nullptr)},
          {"agreement", found.agreement},
          {"massive_dims", found.massive_dims},
          {"layers", std::move(layers)}};
}

}  // namespace onset
