#include "onset/train/policy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "onset/model/decoder.h"
#include "onset/wemask/mask.h"

namespace onset {

std::int64_t trained_count(const SftExample& example) {
  return std::count(example.trained.begin(), example.trained.end(), std::uint8_t{1});
}

Policy::Policy(const Model& model, std::vector<Parameter> trained, std::function<void()> refresh,
               const PolicyOptions& options)
    : model_(model),
      trained_(std::move(trained)),
      refresh_(std::move(refresh)),
      mask_update_(options.mask_update),
      dropout_(options.dropout) {
  if (options.mask) {
    static_cast<void>(check_mask(*options.mask, model_));
    mask_ = std::make_shared<const MaskSpec>(*options.mask);
  }
  changed();
}

void Policy::changed() {
  if (refresh_) refresh_();
  if (!mask_) return;
  const c10::NoGradGuard no_grad;
  if (mask_update_ == MaskUpdate::recompute) {
    mask_ = std::make_shared<const MaskSpec>(refreshed(*mask_, model_));
    hooks_ = nullptr;
  }
  if (!hooks_) hooks_ = masking(*mask_, model_);
}

void Policy::draw_dropout(std::uint64_t seed) {
  if (dropout_) dropout_->seed = seed;
}

TokenLogps Policy::logps(std::span<const SftExample* const> examples,
                         const LogpOptions& options) const {
  if (dropout_) dropout_->training = c10::GradMode::is_enabled();
  std::vector<SequenceInput> batch;
  ScoredRows scored;
  std::int64_t row = 0;
  for (const SftExample* example : examples) {
    // What stands behind the last trained token changes nothing.
    const auto last = std::find(example->trained.rbegin(), example->trained.rend(), 1);
    const auto length = static_cast<std::size_t>(example->trained.rend() - last);
    if (length < 2) continue;
    for (std::size_t t = 1; t < length; ++t) {
      if (example->trained[t] == 0) continue;
      scored.rows.push_back(row + static_cast<std::int64_t>(t) - 1);
      scored.targets.push_back(example->ids[t]);
    }
    // The last token is predicted, and predicts nothing.
    batch.push_back(
        {.ids = TokenIds(example->ids.begin(),
                         example->ids.begin() + static_cast<std::ptrdiff_t>(length - 1))});
    row += static_cast<std::int64_t>(length) - 1;
  }
  const Decoder& decoder = model_.decoder();
  if (batch.empty()) {
    return {.values = at::zeros({0}, at::TensorOptions(at::kFloat).device(decoder.device()))
                          .requires_grad_(c10::GradMode::is_enabled())};
  }
  const Hooks* hooks = options.masked ? hooks_.get() : nullptr;
  const ForwardResult result = decoder.forward(batch, LogitRows::none, hooks);
  return token_logps(
      decoder, result.hidden, scored,
      {.temperature = options.temperature, .equal_gradients = options.equal_gradients});
}

}  // namespace onset
