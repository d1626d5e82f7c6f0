#include "onset/wemask/mask_effect.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "onset/base/error.h"
#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/selection.h"

namespace onset {
namespace {

constexpr std::size_t dims_told = 8;

double energy_share(std::span<const float> input, const std::vector<std::int64_t>& dims,
                    double gamma) {
  double all = 0;
  for (const float x : input) all += static_cast<double>(x) * static_cast<double>(x);
  double chosen = 0;
  for (const std::int64_t dim : dims) {
    const auto x = static_cast<double>(input[static_cast<std::size_t>(dim)]);
    chosen += x * x;
  }
  return all > 0 ? chosen / all * (1.0 - (1.0 - gamma) * (1.0 - gamma)) : 0.0;
}

}  // namespace

std::vector<MaskedLayer> mask_effect(const Model& model, const MaskSpec& spec,
                                     const std::vector<std::vector<std::int64_t>>& prompts,
                                     const Log& log) {
  const c10::InferenceMode inference;
  std::vector<MaskedLayer> layers;
  for (std::int64_t layer = spec.from_layer; layer <= spec.to_layer; ++layer) {
    layers.push_back({.layer = layer, .first_dims = {}});
  }
  Hooks hooks(model.config().layer_count());
  add_mask(hooks, spec, model,
           [&](const SiteContext& context, std::int64_t, const std::vector<std::int64_t>& dims,
               std::span<const float> input) {
             MaskedLayer& row =
                 layers[static_cast<std::size_t>(context.site.layer - spec.from_layer)];
             if (row.tokens++ == 0) {
               row.first_dims.assign(
                   dims.begin(),
                   dims.begin() + static_cast<std::ptrdiff_t>(std::min(dims.size(), dims_told)));
             }
             row.energy_removed += energy_share(input, dims, spec.gamma);
             row.activation_overlap +=
                 jaccard(dims, largest_dims(input, static_cast<std::int64_t>(dims.size())));
           });
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    if (prompts[p].empty()) throw usage_error(str_cat("prompt ", p, " has no tokens"));
    const std::vector<SequenceInput> batch{{.ids = prompts[p], .cache = nullptr}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks, spec.to_layer + 1));
    log.step("prompts", static_cast<std::int64_t>(p + 1),
             static_cast<std::int64_t>(prompts.size()));
  }
  for (MaskedLayer& row : layers) {
    if (row.tokens == 0) continue;
    row.energy_removed /= static_cast<double>(row.tokens);
    row.activation_overlap /= static_cast<double>(row.tokens);
  }
  return layers;
}

}  // namespace onset
