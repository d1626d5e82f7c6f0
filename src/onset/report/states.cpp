#include "onset/report/states.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "onset/massive/statistics.h"
#include "onset/model/decoder.h"

namespace onset {
namespace {

constexpr std::size_t most_alone = 16;
constexpr std::int64_t largest_listed = 3;

}  // namespace

PictureView view_of(const ScanResult& result, std::size_t prompt) {
  const PromptScan& scan = result.prompts[prompt];
  PictureView view;
  if (scan.me_layer) {
    view.layer = *scan.me_layer;
    view.token = scan.layers[static_cast<std::size_t>(view.layer)].largest.token;
  } else if (result.candidate && static_cast<std::size_t>(result.candidate->prompt) == prompt) {
    view.layer = result.candidate->layer;
    view.token = result.candidate->token;
  } else {
    const auto most =
        std::max_element(scan.layers.begin(), scan.layers.end(), [](const auto& a, const auto& b) {
          return std::fabs(a.largest.value) < std::fabs(b.largest.value);
        });
    view.layer = most->layer;
    view.token = most->largest.token;
  }
  view.alone = {0};
  const auto add = [&](std::int64_t token) {
    const bool known = std::find(view.alone.begin(), view.alone.end(), token) != view.alone.end();
    if (!known && view.alone.size() < most_alone) view.alone.push_back(token);
  };
  if (scan.me_layer) add(view.token);
  for (const StateEntry& entry :
       scan.layers[static_cast<std::size_t>(view.layer)].massive_entries) {
    add(entry.token);
  }
  return view;
}

PromptStates observe_states(const Model& model, const std::vector<std::int64_t>& ids,
                            const PictureView& view, const Log& log,
                            std::span<const ExpertId> without_experts) {
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  const std::int64_t hidden = model.config().hidden;
  const auto tokens = static_cast<std::int64_t>(ids.size());
  const std::vector<Block> dims = divide_evenly(hidden, most_dim_blocks);
  PromptStates states{
      .view = view,
      .largest = {},
      .tokens = {divide_evenly(tokens, most_token_blocks, view.alone), dims},
      .layers = {divide_evenly(layers, most_layer_blocks), dims},
  };
  SiteSet sites(layers);
  sites.add_all_layers(SiteKind::resid_post);
  Hooks hooks(layers);
  switch_off(hooks, without_experts);
  hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
    const at::Tensor state = tensor.to(at::kFloat).contiguous();
    const StateView values{
        .values = {state.const_data_ptr<float>(), static_cast<std::size_t>(tokens * hidden)},
        .hidden = hidden};
    const std::int64_t layer = context.site.layer;
    states.largest.push_back(largest_entries(values, largest_listed));
    states.layers.take(layer, values.values.subspan(static_cast<std::size_t>(view.token * hidden),
                                                    static_cast<std::size_t>(hidden)));
    if (layer == view.layer) states.tokens.take(0, values.values);
    log.step("layers for the report", layer + 1, layers);
  });
  const SequenceInput input{.ids = ids, .cache = nullptr};
  static_cast<void>(model.decoder().forward({&input, 1}, LogitRows::none, &hooks));
  return states;
}

}  // namespace onset
