#include "onset/model/decoder.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "onset/base/error.h"
#include "onset/kernels/gradient.h"
#include "onset/model/decoder_pass.h"
#include "onset/model/layers.h"
#include "onset/model/placement.h"
#include "onset/model/rope.h"

namespace onset {

std::vector<SequenceInput> sequences_of_padded(std::span<const std::int64_t> ids,
                                               std::span<const std::int64_t> mask,
                                               std::int64_t width) {
  if (width <= 0 || ids.size() != mask.size() ||
      ids.size() % static_cast<std::size_t>(width) != 0) {
    throw usage_error("a padded batch needs ids and mask of the same shape [B, T]");
  }
  std::vector<SequenceInput> batch;
  for (std::size_t row = 0; row < ids.size(); row += static_cast<std::size_t>(width)) {
    SequenceInput input;
    bool ended = false;
    for (std::size_t i = row; i < row + static_cast<std::size_t>(width); ++i) {
      const bool attended = mask[i] != 0;
      if (attended && ended) {
        throw usage_error(
            str_cat("row ", batch.size(), " of a padded batch has a hole in its mask"));
      }
      if (attended) input.ids.push_back(ids[i]);
      ended = !attended && !input.ids.empty();
    }
    if (input.ids.empty()) {
      throw usage_error(str_cat("row ", batch.size(), " of a padded batch has no token"));
    }
    batch.push_back(std::move(input));
  }
  return batch;
}

Decoder::Decoder(const Checkpoint& checkpoint, const ModelConfig& config,
                 const ModelOptions& options, const Log& log)
    : checkpoint_(checkpoint),
      config_(config),
      options_(options),
      device_(torch_device(options.device)),
      weights_(find_weights(checkpoint, config, options.compute, log)) {
  place_weights();
  if (options.residency == Residency::streamed) return;
  for (LayerWeights& layer : weights_.layers) {
    for_each_linear(layer, [](Linear& linear) { linear.make_resident(); });
    if (layer.attention.latent) {
      LatentWeights& latent = *layer.attention.latent;
      latent.resident_up = latent.dense_up(config_.heads, residual_type(compute())).to(device_);
    }
  }
  weights_.head.make_resident();
}

// The embedding stays where it is: its rows are gathered there.
void Decoder::place_weights() {
  for (std::int64_t index = 0; index < config_.layer_count(); ++index) {
    LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
    for_each_linear(layer, [this](Linear& linear) { linear.place(device_); });
    for (const NamedGain& gain : gains_of(layer, config_, weights_, index)) {
      *gain.gain = gain.gain->to(device_);
    }
    if (layer.mixture && layer.mixture->correction_bias.defined()) {
      layer.mixture->correction_bias = layer.mixture->correction_bias.to(device_);
    }
  }
  weights_.final_norm = weights_.final_norm.to(device_);
  weights_.head.place(device_);
}

ForwardResult Decoder::forward(std::span<const SequenceInput> batch, LogitRows rows,
                               const Hooks* hooks, std::optional<std::int64_t> layers) const {
  require_input(!batch.empty(), "a forward call without sequences");
  rebuild_caches(batch, hooks);
  const auto pass = std::make_shared<Pass>(*this, batch, hooks);
  if (layers && *layers < pass->layers) {
    const bool cached = std::any_of(batch.begin(), batch.end(),
                                    [](const auto& input) { return input.cache != nullptr; });
    if (rows != LogitRows::none || cached || *layers < 0) {
      throw std::logic_error("a pass over the first blocks has neither logits nor caches");
    }
    pass->layers = *layers;
  }
  return run(pass, rows);
}

void Decoder::rebuild_caches(std::span<const SequenceInput> batch, const Hooks* hooks) const {
  for (const SequenceInput& input : batch) {
    if (input.cache == nullptr || input.cache->length() == 0) continue;
    const std::int64_t length = rope_length(input);
    const bool changes =
        std::any_of(config_.ropes.begin(), config_.ropes.end(), [&](const RopeConfig& rope) {
          return rope_changes_between(rope, input.cache->rope_length(), length);
        });
    if (!changes) continue;
    const std::vector<SequenceInput> again{
        {.ids = input.cache->ids(), .cache = input.cache, .planned_length = length}};
    input.cache->truncate(0);
    std::optional<Hooks> interventions;
    if (hooks != nullptr) interventions = hooks->without_observers();
    static_cast<void>(
        run(std::make_shared<Pass>(*this, again, interventions ? &*interventions : nullptr),
            LogitRows::none));
  }
}

ForwardResult Decoder::run(const std::shared_ptr<Pass>& pass, LogitRows rows) const {
  const bool recompute = recompute_blocks_ && c10::GradMode::is_enabled();
  if (recompute) pass->keep_batch();
  read_ahead(0);
  at::Tensor stream = pass->at(SiteKind::embed, -1, embed(pass->batch));
  for (std::int64_t layer = 0; layer < pass->layers; ++layer) {
    if (layer + 1 < pass->layers) read_ahead(layer + 1);
    stream = recompute ? recomputed(stream,
                                    [this, pass, layer](const at::Tensor& input) {
                                      return block(*pass, layer, input);
                                    })
                       : block(*pass, layer, std::move(stream));
    drop_behind(layer);
  }
  for (const SequenceInput& input : pass->batch) {
    if (input.cache != nullptr) input.cache->advance(input.ids, rope_length(input));
  }
  ForwardResult result;
  result.hidden = stream;
  if (rows != LogitRows::none) result.logits = final_logits(*pass, stream, rows);
  result.sequences = pass->sequences;
  return result;
}

at::Tensor Decoder::embed(std::span<const SequenceInput> batch) const {
  std::vector<std::int64_t> ids;
  for (const SequenceInput& input : batch)
    ids.insert(ids.end(), input.ids.begin(), input.ids.end());
  const at::Tensor& trained = weights_.embedding_parameter;
  const at::Tensor rows =
      trained.defined()
          ? at::embedding(trained, indices(ids, trained))
          : gather_rows(weights_.embedding, ids).to(device_, residual_type(compute()));
  return config_.embedding_scale == 1.0 ? rows : rows.mul(config_.embedding_scale);
}

at::Tensor Decoder::block(const Pass& pass, std::int64_t layer, at::Tensor stream) const {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto normed = [&](SiteKind site, const at::Tensor& x, const at::Tensor& gain) {
    return pass.at(site, layer, rms_norm(x, gain, config_.norm_eps));
  };
  // What a module adds to the stream: its output, after the norm that some families put there.
  const auto added = [&](SiteKind raw_site, SiteKind site, at::Tensor raw,
                         const at::Tensor& post_gain) {
    if (!post_gain.defined()) return pass.at(site, layer, std::move(raw));
    return normed(site, pass.at(raw_site, layer, std::move(raw)), post_gain);
  };
  const at::Tensor resid_pre = pass.at(SiteKind::resid_pre, layer, std::move(stream));
  const at::Tensor attn_in = weights.attn_norm.defined()
                                 ? normed(SiteKind::attn_norm, resid_pre, weights.attn_norm)
                                 : resid_pre;
  const at::Tensor attn_out = added(SiteKind::attn_raw, SiteKind::attn_out,
                                    attention(pass, layer, attn_in), weights.attn_post_norm);
  const at::Tensor resid_mid = pass.at(SiteKind::resid_mid, layer, resid_pre + attn_out);
  const at::Tensor ffn_in = weights.ffn_norm.defined()
                                ? normed(SiteKind::ffn_norm, resid_mid, weights.ffn_norm)
                                : pass.at(SiteKind::ffn_norm, layer, resid_mid);
  const at::Tensor ffn_out =
      added(SiteKind::ffn_raw, SiteKind::ffn_out, ffn(pass, layer, ffn_in), weights.ffn_post_norm);
  return pass.at(SiteKind::resid_post, layer, resid_mid + ffn_out);
}

at::Tensor Decoder::final_logits(const Pass& pass, const at::Tensor& hidden, LogitRows rows) const {
  // Observers of the final norm and the logits see all rows.
  const bool all = rows == LogitRows::all || pass.wants(SiteKind::final_norm, -1) ||
                   pass.wants(SiteKind::logits, -1);
  std::vector<std::int64_t> last;
  for (const SequenceRows& sequence : pass.sequences)
    last.push_back(sequence.row + sequence.count - 1);
  const at::Tensor chosen = indices(last, hidden);
  const at::Tensor normed = pass.at(SiteKind::final_norm, -1,
                                    rms_norm(all ? hidden : hidden.index_select(0, chosen),
                                             weights_.final_norm, config_.norm_eps));
  const at::Tensor logits =
      pass.at(SiteKind::logits, -1, soft_cap(weights_.head(normed), config_.logit_softcap));
  return all && rows == LogitRows::last ? logits.index_select(0, chosen) : logits;
}

at::Tensor Decoder::logits_of(const at::Tensor& hidden) const {
  return soft_cap(weights_.head(rms_norm(hidden, weights_.final_norm, config_.norm_eps)),
                  config_.logit_softcap);
}

void Decoder::release_pages() const {
  for (const TensorInfo& tensor : checkpoint_.tensors()) checkpoint_.drop(tensor);
}

void Decoder::read_ahead(std::int64_t layer) const {
  if (options_.residency != Residency::streamed || layer >= config_.layer_count()) return;
  for (const TensorInfo* tensor : weights_.layers[static_cast<std::size_t>(layer)].tensors) {
    checkpoint_.will_need(*tensor);
  }
}

void Decoder::drop_behind(std::int64_t layer) const {
  if (options_.residency != Residency::streamed) return;
  for (const TensorInfo* tensor : weights_.layers[static_cast<std::size_t>(layer)].tensors) {
    checkpoint_.drop(*tensor);
  }
}

}  // namespace onset
