#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "onset/model/decoder.h"
#include "onset/model/layers.h"
#include "onset/model/placement.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/selection.h"

namespace onset {
namespace {

// The input of the norm, kept from one site of a block to the next.
struct Kept {
  at::Tensor resid_pre;
};

std::vector<float> row_values(const at::Tensor& packed, std::int64_t row) {
  const at::Tensor values = packed[row].detach().to(at::kCPU, at::kFloat).contiguous();
  const float* first = values.const_data_ptr<float>();
  return {first, first + values.numel()};
}

class MaskedNorm {
 public:
  MaskedNorm(const MaskSpec& spec, const Model& model, std::shared_ptr<const Kept> kept,
             MaskObserver observer, MaskedSequences sequences)
      : spec_(spec),
        model_(model),
        kept_(std::move(kept)),
        observer_(std::move(observer)),
        sequences_(std::move(sequences)) {}

  at::Tensor operator()(const SiteContext& context, const at::Tensor& normed) const {
    const std::vector<std::int64_t> rows = masked_rows(context);
    if (rows.empty()) return normed;
    const std::int64_t layer = context.site.layer;
    const at::Tensor index = indices(rows, normed);
    const at::Tensor factor = at::ones({static_cast<std::int64_t>(rows.size()), normed.size(1)},
                                       normed.options().requires_grad(false));
    std::vector<std::int64_t> shared;
    // The released code's one choice for the batch; another criterion chooses as ever.
    const bool averaged = spec_.official_compat && spec_.criterion == MaskCriterion::activation;
    if (averaged) shared = official_dims(normed, index);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto dims = averaged ? shared : dims_of(normed, layer, rows[i]);
      if (observer_) observer_(context, rows[i], dims, row_values(normed, rows[i]));
      factor[static_cast<std::int64_t>(i)].index_fill_(0, indices(dims, normed), 1.0 - spec_.gamma);
    }
    if (spec_.placement == MaskPlacement::post_norm) {
      return normed.index_copy(0, index, normed.index_select(0, index).mul(factor));
    }
    const at::Tensor masked = kept_->resid_pre.index_select(0, index).mul(factor);
    const at::Tensor& gain =
        model_.decoder().weights().layers[static_cast<std::size_t>(layer)].attn_norm;
    return normed.index_copy(0, index, rms_norm(masked, gain, model_.config().norm_eps));
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> masked_rows(const SiteContext& context) const {
    std::vector<std::int64_t> rows;
    for (std::size_t s = 0; s < context.sequences.size(); ++s) {
      if (sequences_ && !sequences_(s)) continue;
      const SequenceRows& sequence = context.sequences[s];
      if (spec_.official_compat) {
        rows.push_back(sequence.row);
        continue;
      }
      switch (spec_.tokens) {
        case MaskTokens::first:
          if (sequence.position == 0) rows.push_back(sequence.row);
          break;
        case MaskTokens::positions:
          for (const std::int64_t position : spec_.positions) {
            const std::int64_t at = position - sequence.position;
            if (at >= 0 && at < sequence.count) rows.push_back(sequence.row + at);
          }
          break;
        case MaskTokens::massive:
          add_massive(sequence, rows);
          break;
      }
    }
    return rows;
  }

  // By each token's own state alone, so that what a token is given with does not matter.
  void add_massive(const SequenceRows& sequence, std::vector<std::int64_t>& rows) const {
    const at::Tensor dims = indices(spec_.massive_dims, kept_->resid_pre);
    const at::Tensor largest = kept_->resid_pre.narrow(0, sequence.row, sequence.count)
                                   .index_select(1, dims)
                                   .abs()
                                   .amax(1);  // [T]
    const at::Tensor found = largest.gt(spec_.massive_threshold).nonzero();
    for (std::int64_t i = 0; i < found.size(0); ++i) {
      rows.push_back(sequence.row + found[i].item<std::int64_t>());
    }
  }

  [[nodiscard]] std::vector<std::int64_t> dims_of(const at::Tensor& normed, std::int64_t layer,
                                                  std::int64_t row) const {
    if (spec_.criterion == MaskCriterion::activation) {
      return largest_dims(row_values(normed, row), spec_.k);
    }
    if (spec_.criterion == MaskCriterion::magnitude) {
      return largest_dims(row_values(kept_->resid_pre, row), spec_.k);
    }
    return spec_.dims.at(layer);
  }

  [[nodiscard]] std::vector<std::int64_t> official_dims(const at::Tensor& normed,
                                                        const at::Tensor& rows) const {
    const at::Tensor mean = normed.detach().index_select(0, rows).abs().mean(0, /*keepdim=*/true);
    return largest_dims(row_values(mean, 0), spec_.k);
  }

  MaskSpec spec_;
  const Model& model_;
  std::shared_ptr<const Kept> kept_;
  MaskObserver observer_;
  MaskedSequences sequences_;
};

}  // namespace

void add_mask(Hooks& hooks, const MaskSpec& spec, const Model& model, const MaskObserver& observer,
              const MaskedSequences& sequences) {
  SiteSet inputs(model.config().layer_count());
  SiteSet outputs(model.config().layer_count());
  for (std::int64_t layer = spec.from_layer; layer <= spec.to_layer; ++layer) {
    inputs.add({SiteKind::resid_pre, layer});
    outputs.add({SiteKind::attn_norm, layer});
  }
  auto kept = std::make_shared<Kept>();
  const bool needs_input = spec.placement == MaskPlacement::pre_norm ||
                           spec.criterion == MaskCriterion::magnitude ||
                           spec.tokens == MaskTokens::massive;
  if (needs_input) {
    // An intervention that changes nothing: a pass without observers needs it too.
    hooks.intervene_on_device(inputs, [kept](const SiteContext&, const at::Tensor& stream) {
      kept->resid_pre = stream;
      return stream;
    });
  }
  hooks.intervene_on_device(outputs, MaskedNorm(spec, model, kept, observer, sequences));
}

bool may_mask(const MaskSpec& spec, std::int64_t position, std::int64_t count) {
  if (spec.official_compat || spec.tokens == MaskTokens::massive) return true;
  if (spec.tokens == MaskTokens::first) return position == 0;
  return std::any_of(spec.positions.begin(), spec.positions.end(), [&](std::int64_t masked) {
    return masked >= position && masked < position + count;
  });
}

std::shared_ptr<const Hooks> masking(const MaskSpec& spec, const Model& model) {
  auto hooks = std::make_shared<Hooks>(model.config().layer_count());
  add_mask(*hooks, spec, model);
  return hooks;
}

}  // namespace onset
