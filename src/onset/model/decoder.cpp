#include "onset/model/decoder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "onset/base/error.h"
#include "onset/model/attention.h"
#include "onset/model/layers.h"
#include "onset/model/rope.h"

namespace onset {
namespace {

at::ScalarType residual_type(Compute compute) {
  return compute == Compute::f64 ? at::kDouble : at::kFloat;
}

std::vector<SequenceRows> pack(std::span<const SequenceInput> batch, const ModelConfig& config) {
  std::vector<SequenceRows> sequences;
  std::int64_t row = 0;
  for (const SequenceInput& input : batch) {
    require_input(!input.ids.empty(), "a sequence without tokens");
    for (const std::int64_t id : input.ids) {
      require_input(id >= 0 && id < config.vocabulary, "token id ", id,
                    " is outside the vocabulary of ", config.vocabulary);
    }
    const auto count = static_cast<std::int64_t>(input.ids.size());
    const std::int64_t position = input.cache == nullptr ? 0 : input.cache->length();
    sequences.push_back({.row = row, .count = count, .position = position});
    row += count;
  }
  return sequences;
}

// The length of the sequence that RoPE is chosen for.
std::int64_t rope_length(const SequenceInput& input) {
  const std::int64_t before = input.cache == nullptr ? 0 : input.cache->length();
  return std::max(before + static_cast<std::int64_t>(input.ids.size()), input.planned_length);
}

}  // namespace

// What stays the same through one forward call.
struct Decoder::Pass {
  std::span<const SequenceInput> batch;
  std::vector<SequenceRows> sequences;
  std::int64_t rows = 0;
  std::int64_t layers = 0;  // blocks to run
  const Hooks* hooks = nullptr;
  std::vector<RopeTable> ropes;  // of each of the configuration's RoPE sets

  Pass(const Decoder& decoder, std::span<const SequenceInput> inputs, const Hooks* asked)
      : batch(inputs),
        sequences(pack(inputs, decoder.config_)),
        layers(decoder.config_.layer_count()),
        hooks(asked) {
    rows = sequences.back().row + sequences.back().count;
    for (const RopeConfig& rope : decoder.config_.ropes) {
      std::vector<RopeFrequencies> frequencies;
      for (const SequenceInput& input : inputs) {
        frequencies.push_back(rope_frequencies(rope, rope_length(input)));
      }
      ropes.push_back(rope_table(frequencies, sequences, residual_type(decoder.options_.compute)));
    }
  }

  [[nodiscard]] bool wants(SiteKind kind, std::int64_t layer) const {
    return hooks != nullptr && hooks->wants({kind, layer});
  }
  // The tensor as it leaves the site.
  [[nodiscard]] at::Tensor at(SiteKind kind, std::int64_t layer, at::Tensor tensor,
                              std::int64_t sequence = -1) const {
    if (!wants(kind, layer)) return tensor;
    return hooks->run({.site = {kind, layer}, .sequences = sequences, .sequence = sequence},
                      std::move(tensor));
  }
};

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
      weights_(find_weights(checkpoint, config, options.compute, log)) {
  if (options.residency == Residency::streamed) return;
  for (LayerWeights& layer : weights_.layers) {
    AttentionWeights& attention = layer.attention;
    for (Linear* linear : {&attention.q, &attention.k, &attention.v, &attention.o, &layer.ffn.gate,
                           &layer.ffn.up, &layer.ffn.down}) {
      linear->make_resident();
    }
  }
  weights_.head.make_resident();
}

ForwardResult Decoder::forward(std::span<const SequenceInput> batch, LogitRows rows,
                               const Hooks* hooks, std::optional<std::int64_t> layers) const {
  require_input(!batch.empty(), "a forward call without sequences");
  rebuild_caches(batch, hooks);
  Pass pass(*this, batch, hooks);
  if (layers && *layers < pass.layers) {
    const bool cached = std::any_of(batch.begin(), batch.end(),
                                    [](const auto& input) { return input.cache != nullptr; });
    if (rows != LogitRows::none || cached || *layers < 0) {
      throw std::logic_error("a pass over the first blocks has neither logits nor caches");
    }
    pass.layers = *layers;
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
    Pass pass(*this, again, interventions ? &*interventions : nullptr);
    static_cast<void>(run(pass, LogitRows::none));
  }
}

ForwardResult Decoder::run(Pass& pass, LogitRows rows) const {
  read_ahead(0);
  at::Tensor stream = pass.at(SiteKind::embed, -1, embed(pass.batch));
  for (std::int64_t layer = 0; layer < pass.layers; ++layer) {
    if (layer + 1 < pass.layers) read_ahead(layer + 1);
    stream = block(pass, layer, std::move(stream));
    drop_behind(layer);
  }
  for (const SequenceInput& input : pass.batch) {
    if (input.cache != nullptr) input.cache->advance(input.ids, rope_length(input));
  }
  ForwardResult result;
  result.hidden = stream;
  if (rows != LogitRows::none) result.logits = final_logits(pass, stream, rows);
  result.sequences = std::move(pass.sequences);
  return result;
}

at::Tensor Decoder::embed(std::span<const SequenceInput> batch) const {
  std::vector<std::int64_t> ids;
  for (const SequenceInput& input : batch)
    ids.insert(ids.end(), input.ids.begin(), input.ids.end());
  const at::Tensor rows = gather_rows(weights_.embedding, ids).to(residual_type(options_.compute));
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

at::Tensor Decoder::attention(const Pass& pass, std::int64_t layer, const at::Tensor& input) const {
  const AttentionWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].attention;
  const LayerConfig& layer_config = config_.layers[static_cast<std::size_t>(layer)];
  const RopeTable& rope = pass.ropes[layer_config.rope];
  const auto heads_of = [&](const Linear& linear, const at::Tensor& norm) {
    const std::vector<std::int64_t> shape{pass.rows, -1, config_.head_dim};
    const at::Tensor x = linear(input);
    if (!norm.defined()) return x.view(shape);
    // Over all heads at once, or each head for itself.
    if (config_.qk_norm == QkNorm::whole) return rms_norm(x, norm, config_.norm_eps).view(shape);
    return rms_norm(x.view(shape), norm, config_.norm_eps);
  };
  const at::Tensor q_pre = pass.at(SiteKind::q_pre, layer, heads_of(weights.q, weights.q_norm));
  const at::Tensor k_pre = pass.at(SiteKind::k_pre, layer, heads_of(weights.k, weights.k_norm));
  const at::Tensor q = pass.at(SiteKind::q, layer, rotate(q_pre, rope));
  const at::Tensor k = pass.at(SiteKind::k, layer, rotate(k_pre, rope));
  const at::Tensor v = pass.at(SiteKind::v, layer, heads_of(weights.v, {}));
  const bool explicit_softmax =
      pass.wants(SiteKind::attn_scores, layer) || pass.wants(SiteKind::attn_probs, layer);

  // A token that sees itself alone takes its own value whole, whatever the score.
  const bool alone =
      !explicit_softmax &&
      std::all_of(pass.batch.begin(), pass.batch.end(), [](const SequenceInput& given) {
        return given.cache == nullptr && given.ids.size() == 1;
      });
  std::vector<at::Tensor> heads;
  heads.reserve(pass.sequences.size());
  if (alone) heads.push_back(v.repeat_interleave(q.size(1) / v.size(1), 1));
  for (std::size_t s = 0; !alone && s < pass.sequences.size(); ++s) {
    const SequenceRows& rows = pass.sequences[s];
    AttentionInput attend{.q = q.narrow(0, rows.row, rows.count),
                          .k = k.narrow(0, rows.row, rows.count),
                          .v = v.narrow(0, rows.row, rows.count),
                          .scale = config_.attention_scale,
                          .window = layer_config.sliding_window,
                          .softcap = config_.attention_softcap};
    if (KvCache* cache = pass.batch[s].cache; cache != nullptr) {
      const KvCache::View kept = cache->append(layer, attend.k, attend.v);
      attend.k = kept.keys;
      attend.v = kept.values;
    } else {
      attend.k = attend.k.transpose(0, 1);
      attend.v = attend.v.transpose(0, 1);
    }
    if (!explicit_softmax) {
      heads.push_back(fused_attention(attend, options_.compute));
      continue;
    }
    const auto index = static_cast<std::int64_t>(s);
    heads.push_back(explicit_attention(
        attend,
        [&](at::Tensor t) { return pass.at(SiteKind::attn_scores, layer, std::move(t), index); },
        [&](at::Tensor t) { return pass.at(SiteKind::attn_probs, layer, std::move(t), index); }));
  }
  const at::Tensor all = heads.size() == 1 ? heads.front() : at::cat(heads, 0);
  const at::Tensor attn_heads = pass.at(SiteKind::attn_heads, layer, all);
  return weights.o(attn_heads.reshape({pass.rows, -1}));
}

at::Tensor Decoder::ffn(const Pass& pass, std::int64_t layer, const at::Tensor& input) const {
  const FfnWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].ffn;
  const at::Tensor gate = pass.at(SiteKind::ffn_gate, layer, weights.gate(input));
  const at::Tensor up = pass.at(SiteKind::ffn_up, layer, weights.up(input));
  const at::Tensor product =
      pass.at(SiteKind::ffn_product, layer, gated(config_.activation, gate, up));
  return weights.down(product);
}

at::Tensor Decoder::final_logits(const Pass& pass, const at::Tensor& hidden, LogitRows rows) const {
  // Observers of the final norm and the logits see all rows.
  const bool all = rows == LogitRows::all || pass.wants(SiteKind::final_norm, -1) ||
                   pass.wants(SiteKind::logits, -1);
  std::vector<std::int64_t> last;
  for (const SequenceRows& sequence : pass.sequences)
    last.push_back(sequence.row + sequence.count - 1);
  const at::Tensor chosen = at::tensor(last, at::kLong);
  const at::Tensor normed = pass.at(SiteKind::final_norm, -1,
                                    rms_norm(all ? hidden : hidden.index_select(0, chosen),
                                             weights_.final_norm, config_.norm_eps));
  const at::Tensor logits =
      pass.at(SiteKind::logits, -1, soft_cap(weights_.head(normed), config_.logit_softcap));
  return all && rows == LogitRows::last ? logits.index_select(0, chosen) : logits;
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
