// Attention of a block: from its input to what o_proj makes of the heads.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "onset/base/error.h"
#include "onset/kernels/cached_attention.h"
#include "onset/kernels/gradient.h"
#include "onset/kernels/own_kernels.h"
#include "onset/kernels/packed_attention.h"
#include "onset/kernels/tile_product.h"
#include "onset/model/attention.h"
#include "onset/model/decoder_pass.h"
#include "onset/model/recorded_attention.h"

namespace onset {
namespace {

// The leading [rows, row + count) of what attention works on, heads first.
at::Tensor heads_first(const at::Tensor& packed, const SequenceRows& rows) {
  return packed.narrow(0, rows.row, rows.count).transpose(0, 1);
}

// From dims that turn together side by side to the two halves one after the other.
at::Tensor halves(const at::Tensor& x) {
  const std::int64_t dim = x.size(-1);
  std::vector<std::int64_t> pairs(x.sizes().begin(), x.sizes().end());
  pairs.back() = dim / 2;
  pairs.push_back(2);
  return x.reshape(pairs).transpose(-1, -2).flatten(-2);
}

// Whether the sequence is one token behind what its cache holds.
bool continues_cache(const SequenceInput& input) {
  return input.cache != nullptr && input.cache->length() > 0 && input.ids.size() == 1;
}

bool stands_behind(const SequenceInput& input) {
  return input.behind.has_value() || input.prefix != nullptr;
}

}  // namespace

// Of the packed rows; after RoPE, after the sites.
struct Decoder::HeadStates {
  at::Tensor q;        // [N, H, K]
  at::Tensor k;        // [N, G, K]; undefined where latents alone are needed
  at::Tensor v;        // [N, G, V]
  at::Tensor latents;  // [N, kv_rank + rope_dim] in latent attention: what the cache keeps
};

Decoder::HeadStates Decoder::project(const Pass& pass, std::int64_t layer,
                                     const at::Tensor& input) const {
  const AttentionWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].attention;
  const RopeTable& rope = pass.ropes[config_.layers[static_cast<std::size_t>(layer)].rope];
  const LinearInput shared(input);
  const auto heads_of = [&](const Linear& linear, const at::Tensor& norm) {
    const std::vector<std::int64_t> shape{pass.rows, -1, config_.head_dim};
    const at::Tensor x = linear(shared);
    if (!norm.defined()) return x.view(shape);
    // Over all heads at once, or each head for itself.
    if (config_.qk_norm == QkNorm::whole) return rms_norm(x, norm, config_.norm_eps).view(shape);
    return rms_norm(x.view(shape), norm, config_.norm_eps);
  };
  const at::Tensor q_pre = pass.at(SiteKind::q_pre, layer, heads_of(weights.q, weights.q_norm));
  const at::Tensor k_pre = pass.at(SiteKind::k_pre, layer, heads_of(weights.k, weights.k_norm));
  HeadStates states;
  states.q = pass.at(SiteKind::q, layer, rotate(q_pre, rope));
  states.k = pass.at(SiteKind::k, layer, rotate(k_pre, rope));
  states.v = pass.at(SiteKind::v, layer, heads_of(weights.v, {}));
  return states;
}

Decoder::HeadStates Decoder::project_latent(const Pass& pass, std::int64_t layer,
                                            const at::Tensor& input) const {
  const AttentionWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].attention;
  const LatentWeights& latent = *weights.latent;
  const LatentConfig& sizes = config_.latent;
  const RopeTable& rope = pass.ropes[config_.layers[static_cast<std::size_t>(layer)].rope];
  const std::int64_t plain = config_.head_dim - sizes.rope_dim;
  const auto in_order = [&](const at::Tensor& x) {
    return config_.interleaved_rope ? halves(x) : x.contiguous();
  };
  const auto turned = [&](const at::Tensor& heads) {
    return at::cat({heads.narrow(2, 0, plain),
                    rotate(heads.narrow(2, plain, sizes.rope_dim).contiguous(), rope)},
                   2);
  };
  at::Tensor query_input = input;
  if (sizes.query_rank > 0) {
    query_input = pass.at(SiteKind::q_latent, layer,
                          rms_norm(latent.query_down(input), latent.query_norm, sizes.norm_eps));
  }
  const at::Tensor q = weights.q(query_input).view({pass.rows, config_.heads, config_.head_dim});
  const at::Tensor q_pre =
      pass.at(SiteKind::q_pre, layer,
              at::cat({q.narrow(2, 0, plain), in_order(q.narrow(2, plain, sizes.rope_dim))}, 2));
  const at::Tensor down = latent.key_value_down(input);
  const at::Tensor kept = pass.at(SiteKind::kv_latent, layer,
                                  rms_norm(down.narrow(1, 0, sizes.kv_rank).contiguous(),
                                           latent.key_value_norm, sizes.norm_eps));
  const at::Tensor key_part =
      in_order(down.narrow(1, sizes.kv_rank, sizes.rope_dim)).unsqueeze(1);  // [N, 1, rope]
  const at::Tensor turned_part = rotate(key_part, rope);

  HeadStates states;
  states.q = pass.at(SiteKind::q, layer, turned(q_pre));
  states.latents = at::cat({kept, turned_part.squeeze(1)}, 1);
  if (!needs_keys_and_values(pass, layer)) return states;
  const KeysAndValues made = keys_and_values(layer, kept, key_part);
  const at::Tensor k_pre = pass.at(SiteKind::k_pre, layer, made.keys);
  // The part that the heads share was turned once; an edit of k_pre turns each head's own.
  const bool edited = pass.hooks != nullptr && pass.hooks->edits({SiteKind::k_pre, layer});
  const at::Tensor k =
      edited ? turned(k_pre)
             : at::cat({k_pre.narrow(2, 0, plain),
                        turned_part.expand({pass.rows, config_.heads, sizes.rope_dim})},
                       2);
  states.k = pass.at(SiteKind::k, layer, k);
  states.v = pass.at(SiteKind::v, layer, made.values);
  return states;
}

// Keys and values of a sequence whose cache already holds positions are made from the latents when
// they are needed, and not at all where the queries can be brought to the latents instead.
bool Decoder::needs_keys_and_values(const Pass& pass, std::int64_t layer) const {
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    if (pass.batch[s].cache == nullptr || !stays_latent(pass.sequences[s])) return true;
  }
  return pass.wants(SiteKind::k_pre, layer) || pass.wants(SiteKind::k, layer) ||
         pass.wants(SiteKind::v, layer);
}

// By the multiplications: making keys and values of all positions, or bringing every query to the
// latents, where its products with them are longer (DeepSeek-V2's "absorbed" form).
bool Decoder::stays_latent(const SequenceRows& rows) const {
  if (rows.position == 0) return false;
  const auto made_per_position =
      static_cast<double>(config_.head_dim - config_.latent.rope_dim + config_.value_dim) *
      static_cast<double>(config_.latent.kv_rank);
  const auto positions = static_cast<double>(rows.position + rows.count);
  const auto queries = static_cast<double>(rows.count);
  const auto made = positions * made_per_position +
                    queries * positions * static_cast<double>(config_.head_dim + config_.value_dim);
  const auto latent = queries * made_per_position +
                      queries * positions *
                          static_cast<double>(2 * config_.latent.kv_rank + config_.latent.rope_dim);
  return latent < made;
}

Decoder::KeysAndValues Decoder::keys_and_values(std::int64_t layer, const at::Tensor& latents,
                                                const at::Tensor& key_part) const {
  const LatentWeights& weights = *weights_.layers[static_cast<std::size_t>(layer)].attention.latent;
  const std::int64_t rope_dim = config_.latent.rope_dim;
  const std::int64_t plain = config_.head_dim - rope_dim;
  const std::int64_t n = latents.size(0);
  const at::Tensor both =
      weights.up(latents, config_.heads).view({n, config_.heads, plain + config_.value_dim});
  return {
      .keys = at::cat({both.narrow(2, 0, plain), key_part.expand({n, config_.heads, rope_dim})}, 2),
      .values = both.narrow(2, plain, config_.value_dim)};
}

at::Tensor Decoder::attend(const Pass& pass, std::int64_t layer, std::size_t sequence,
                           AttentionInput input) const {
  input.scale = config_.attention_scale;
  input.window = config_.layers[static_cast<std::size_t>(layer)].sliding_window;
  input.softcap = config_.attention_softcap;
  if (!pass.wants(SiteKind::attn_scores, layer) && !pass.wants(SiteKind::attn_probs, layer)) {
    return fused_attention(input);
  }
  const auto index = static_cast<std::int64_t>(sequence);
  return explicit_attention(
      input,
      [&](at::Tensor t) { return pass.at(SiteKind::attn_scores, layer, std::move(t), index); },
      [&](at::Tensor t) { return pass.at(SiteKind::attn_probs, layer, std::move(t), index); });
}

at::Tensor Decoder::attend_latents(const Pass& pass, std::int64_t layer, std::size_t sequence,
                                   const HeadStates& states) const {
  const SequenceRows& rows = pass.sequences[sequence];
  const std::int64_t rank = config_.latent.kv_rank;
  const std::int64_t plain = config_.head_dim - config_.latent.rope_dim;
  const at::Tensor fresh = states.latents.narrow(0, rows.row, rows.count).unsqueeze(1);
  const at::Tensor kept = pass.batch[sequence].cache->append(layer, fresh, {}).keys;  // [1, S, ..]
  const at::Tensor q = states.q.narrow(0, rows.row, rows.count);
  if (rows.position == 0) {
    return attend(pass, layer, sequence,
                  {.q = q, .k = heads_first(states.k, rows), .v = heads_first(states.v, rows)});
  }
  if (!stays_latent(rows)) {
    const at::Tensor old = kept.narrow(1, 0, rows.position).squeeze(0);
    const KeysAndValues before = keys_and_values(
        layer, old.narrow(1, 0, rank), old.narrow(1, rank, config_.latent.rope_dim).unsqueeze(1));
    return attend(pass, layer, sequence,
                  {.q = q,
                   .k = at::cat({before.keys.transpose(0, 1), heads_first(states.k, rows)}, 1),
                   .v = at::cat({before.values.transpose(0, 1), heads_first(states.v, rows)}, 1)});
  }
  // q . (W c) = (W^T q) . c: one key head of latents for all query heads, whose output is brought
  // back by the other half of the matrix.
  const LatentWeights& weights = *weights_.layers[static_cast<std::size_t>(layer)].attention.latent;
  const at::Tensor up = weights.resident_up.defined()
                            ? weights.resident_up
                            : weights.dense_up(config_.heads, q.scalar_type()).to(q.device());
  const at::Tensor key_up = up.narrow(1, 0, plain);                    // [H, K - rope, rank]
  const at::Tensor value_up = up.narrow(1, plain, config_.value_dim);  // [H, V, rank]
  const at::Tensor brought =
      at::bmm(q.narrow(2, 0, plain).transpose(0, 1), key_up).transpose(0, 1);  // [T, H, rank]
  const at::Tensor latent_heads =
      attend(pass, layer, sequence,
             {.q = at::cat({brought, q.narrow(2, plain, config_.latent.rope_dim)}, 2),
              .k = kept,
              .v = kept.narrow(2, 0, rank)});
  return at::bmm(latent_heads.transpose(0, 1), value_up.transpose(1, 2)).transpose(0, 1);
}

at::Tensor Decoder::attend_decoding(const Pass& pass, std::int64_t layer,
                                    const HeadStates& states) const {
  if (config_.has_latent_attention() || pass.wants(SiteKind::attn_scores, layer) ||
      pass.wants(SiteKind::attn_probs, layer) || states.q.requires_grad() ||
      !suits_own_kernels(states.q)) {
    return {};
  }
  const at::Tensor keys = states.k.contiguous();
  const at::Tensor values = states.v.contiguous();
  std::vector<CachedQuery> queries;
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    if (!continues_cache(pass.batch[s])) continue;
    const SequenceRows& rows = pass.sequences[s];
    const KvCache::Place kept = pass.batch[s].cache->append_row(layer, keys, values, rows.row);
    queries.push_back({.row = rows.row,
                       .keys = kept.keys,
                       .values = kept.values,
                       .capacity = kept.capacity,
                       .length = rows.position + 1});
  }
  if (queries.empty()) return {};
  at::Tensor out = at::empty({pass.rows, config_.heads, values.size(2)}, values.options());
  attend_cached(states.q.contiguous(), queries,
                {.groups = values.size(1),
                 .value_dim = values.size(2),
                 .window = config_.layers[static_cast<std::size_t>(layer)].sliding_window,
                 .scale = config_.attention_scale,
                 .softcap = config_.attention_softcap},
                out);
  return out;
}

at::Tensor Decoder::attend_together(const Pass& pass, std::int64_t layer,
                                    const HeadStates& states) const {
  const bool looked_into =
      pass.wants(SiteKind::attn_scores, layer) || pass.wants(SiteKind::attn_probs, layer);
  if (looked_into || config_.has_latent_attention() || config_.attention_softcap > 0 ||
      states.q.scalar_type() != at::kFloat || !suits_own_kernels(states.q) ||
      !has_tiles(TileType::f32)) {
    return {};
  }
  if (std::any_of(pass.batch.begin(), pass.batch.end(),
                  [](const SequenceInput& given) { return given.cache != nullptr; })) {
    return {};
  }
  if (records_gradient(std::array{states.q, states.k, states.v})) {
    if (std::any_of(pass.batch.begin(), pass.batch.end(), stands_behind)) return {};
    std::vector<AttendedRows> rows;
    for (const SequenceRows& own : pass.sequences) rows.push_back({own.row, own.count});
    return recorded_attention({.q = states.q, .k = states.k, .v = states.v}, rows,
                              config_.attention_scale,
                              config_.layers[static_cast<std::size_t>(layer)].sliding_window);
  }
  if (pass.sequences.size() < 2) return {};
  const at::Tensor keys = states.k.contiguous();
  const at::Tensor values = states.v.contiguous();
  const auto segment_of = [](const at::Tensor& k, const at::Tensor& v, int positions, int groups) {
    return KeySegment{.keys = k.const_data_ptr<float>(),
                      .values = v.const_data_ptr<float>(),
                      .count = k.size(positions),
                      .key_step = k.stride(positions),
                      .value_step = v.stride(positions),
                      .key_group = k.stride(groups),
                      .value_group = v.stride(groups)};
  };
  std::vector<PackedQueries> sequences;
  sequences.reserve(pass.sequences.size());
  for (std::size_t s = 0; s < pass.sequences.size(); ++s) {
    PackedQueries queries{.row = pass.sequences[s].row, .count = pass.sequences[s].count};
    const KvCache* prefix = nullptr;
    for (std::optional<std::size_t> at = s; at; at = pass.batch[*at].behind) {
      const SequenceRows& rows = pass.sequences[*at];
      queries.seen.push_back(segment_of(keys.narrow(0, rows.row, rows.count),
                                        values.narrow(0, rows.row, rows.count), 0, 1));
      prefix = pass.batch[*at].prefix;
    }
    if (prefix != nullptr) {
      const KvCache::View kept = prefix->kept(layer);
      queries.seen.push_back(segment_of(kept.keys, kept.values, 1, 0));
    }
    std::reverse(queries.seen.begin(), queries.seen.end());
    sequences.push_back(std::move(queries));
  }
  const PackedAttention attention{
      .groups = values.size(1),
      .value_dim = values.size(2),
      .window = config_.layers[static_cast<std::size_t>(layer)].sliding_window,
      .scale = config_.attention_scale};
  if (!suits_packed_attention(sequences, attention)) return {};
  at::Tensor out = at::empty({pass.rows, config_.heads, values.size(2)}, values.options());
  attend_packed(states.q.contiguous(), sequences, attention, out);
  return out;
}

// Whether every token sees itself alone: it takes its own value whole, whatever the score.
bool Decoder::all_alone(const Pass& pass, std::int64_t layer) {
  if (pass.wants(SiteKind::attn_scores, layer) || pass.wants(SiteKind::attn_probs, layer)) {
    return false;
  }
  return std::all_of(pass.batch.begin(), pass.batch.end(), [](const SequenceInput& given) {
    return given.cache == nullptr && !stands_behind(given) && given.ids.size() == 1;
  });
}

at::Tensor Decoder::attention(const Pass& pass, std::int64_t layer, const at::Tensor& input) const {
  const bool latent = config_.has_latent_attention();
  const HeadStates states =
      latent ? project_latent(pass, layer, input) : project(pass, layer, input);
  std::vector<at::Tensor> heads;
  heads.reserve(pass.sequences.size());
  const bool alone = all_alone(pass, layer);
  if (alone) heads.push_back(states.v.repeat_interleave(states.q.size(1) / states.v.size(1), 1));
  const at::Tensor decoded = attend_decoding(pass, layer, states);
  const bool all_decode = decoded.defined() &&
                          pass.rows == static_cast<std::int64_t>(pass.sequences.size()) &&
                          std::all_of(pass.batch.begin(), pass.batch.end(), continues_cache);
  if (all_decode) heads.push_back(decoded);
  const at::Tensor together = alone ? at::Tensor() : attend_together(pass, layer, states);
  if (together.defined()) heads.push_back(together);
  const bool one_by_one = heads.empty();
  for (std::size_t s = 0; one_by_one && s < pass.sequences.size(); ++s) {
    const SequenceRows& rows = pass.sequences[s];
    KvCache* cache = pass.batch[s].cache;
    if (decoded.defined() && continues_cache(pass.batch[s])) {
      heads.push_back(decoded.narrow(0, rows.row, 1));
      continue;
    }
    if (latent && cache != nullptr) {
      refuse_lost_edits(pass, layer);
      heads.push_back(attend_latents(pass, layer, s, states));
      continue;
    }
    AttentionInput attended{.q = states.q.narrow(0, rows.row, rows.count),
                            .k = heads_first(states.k, rows),
                            .v = heads_first(states.v, rows)};
    if (stands_behind(pass.batch[s])) {
      const KeysAndValues seen = with_shared(pass, layer, s, states);
      attended.k = seen.keys;
      attended.v = seen.values;
    }
    if (cache != nullptr) {
      const KvCache::View kept = cache->append(layer, states.k.narrow(0, rows.row, rows.count),
                                               states.v.narrow(0, rows.row, rows.count));
      attended.k = kept.keys;
      attended.v = kept.values;
    }
    heads.push_back(attend(pass, layer, s, attended));
  }
  const at::Tensor all = heads.size() == 1 ? heads.front() : at::cat(heads, 0);
  const at::Tensor attn_heads = pass.at(SiteKind::attn_heads, layer, all);
  return weights_.layers[static_cast<std::size_t>(layer)].attention.o(
      attn_heads.reshape({pass.rows, -1}));
}

Decoder::KeysAndValues Decoder::with_shared(const Pass& pass, std::int64_t layer,
                                            std::size_t sequence, const HeadStates& states) const {
  std::vector<at::Tensor> keys;  // from the last to the first
  std::vector<at::Tensor> values;
  const KvCache* prefix = nullptr;
  for (std::optional<std::size_t> at = sequence; at; at = pass.batch[*at].behind) {
    keys.push_back(heads_first(states.k, pass.sequences[*at]));
    values.push_back(heads_first(states.v, pass.sequences[*at]));
    prefix = pass.batch[*at].prefix;
  }
  if (prefix != nullptr) {
    const KvCache::View kept = prefix->kept(layer);
    if (config_.has_latent_attention()) {
      const std::int64_t rank = config_.latent.kv_rank;
      const at::Tensor latents = kept.keys.squeeze(0);
      const KeysAndValues made =
          keys_and_values(layer, latents.narrow(1, 0, rank),
                          latents.narrow(1, rank, config_.latent.rope_dim).unsqueeze(1));
      keys.push_back(made.keys.transpose(0, 1));
      values.push_back(made.values.transpose(0, 1));
    } else {
      keys.push_back(kept.keys);
      values.push_back(kept.values);
    }
  }
  std::reverse(keys.begin(), keys.end());
  std::reverse(values.begin(), values.end());
  return {.keys = at::cat(keys, 1), .values = at::cat(values, 1)};
}

// The cache keeps latents, so that what an intervention makes of keys and values would be gone with
// the call.
void Decoder::refuse_lost_edits(const Pass& pass, std::int64_t layer) const {
  if (pass.hooks == nullptr) return;
  for (const SiteKind kind : {SiteKind::k_pre, SiteKind::k, SiteKind::v}) {
    if (!pass.hooks->edits({kind, layer})) continue;
    throw usage_error(
        str_cat("an intervention at ", site_name({kind, layer}), " would be lost: the cache of ",
                config_.architecture, " keeps latents"),
        "edit kv_latent, or run without a cache");
  }
}

}  // namespace onset
