// The forward pass: one for all families, for analyses, generation and training alike.
//
// Sequences of a call are packed: all activations are [N, ..] with the rows of one sequence after
// those of the other, N tokens in all, so there is no padding and what a row is batched with
// changes it by the rounding of the products alone. Only attention works on one sequence at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "onset/model/attention.h"
#include "onset/model/cache.h"
#include "onset/model/hooks.h"
#include "onset/model/model.h"
#include "onset/model/routing.h"
#include "onset/model/weights.h"

namespace onset {

// One sequence's share of a forward call: tokens from position 0 on, or, with a cache, from the
// cache's length on; their keys and values are then appended to it.
struct SequenceInput {
  std::vector<std::int64_t> ids;
  KvCache* cache = nullptr;
  // The length the sequence is known to reach, where it is given in chunks: with longrope, which
  // chooses its frequencies by the length, chunks are then computed as the whole is. 0: what is
  // given so far.
  std::int64_t planned_length = 0;
  // Beginnings that several sequences of a call share are computed once. The sequence stands behind
  // all tokens of an earlier sequence of the call, one without a cache (its index), or behind those
  // of a cache that is only read; at most one of `cache`, `behind` and `prefix`. With longrope what
  // is shared must have been computed for a length that turns alike (`planned_length`).
  std::optional<std::size_t> behind = std::nullopt;
  const KvCache* prefix = nullptr;
};

// Rows of a padded batch as sequences: the tokens whose mask is not 0, in order. `ids` and `mask`
// are [B, T] row-major. Throws a usage error when a row has no token or holes in its mask.
[[nodiscard]] std::vector<SequenceInput> sequences_of_padded(std::span<const std::int64_t> ids,
                                                             std::span<const std::int64_t> mask,
                                                             std::int64_t width);

enum class LogitRows {
  none,  // the final norm and the head are not computed
  last,  // [B, V]: the last token of each sequence
  all,   // [N, V]
};

struct ForwardResult {
  // Both on the device of the model.
  at::Tensor hidden;  // [N, D], the residual stream after the last block, before the final norm
  at::Tensor logits;  // float32 (float64 in f64); undefined with LogitRows::none
  std::vector<SequenceRows> sequences;
};

class Decoder {
 public:
  // The checkpoint must outlive the decoder.
  Decoder(const Checkpoint& checkpoint, const ModelConfig& config, const ModelOptions& options,
          const Log& log);

  // Throws an input error for an empty sequence or an id outside the vocabulary. The caller sets
  // the autograd mode (c10::InferenceMode where nothing is ever trained).
  // With longrope, a sequence that grows past the original context gets other frequencies at all
  // its positions: its cache is then made anew first, by a pass with the interventions and without
  // the observers.
  // `layers`: how many blocks are run; fewer than all for callers that look at the first ones only,
  // then without logits and caches.
  [[nodiscard]] ForwardResult forward(std::span<const SequenceInput> batch, LogitRows rows,
                                      const Hooks* hooks = nullptr,
                                      std::optional<std::int64_t> layers = std::nullopt) const;

  // The logits [n, V] of rows of ForwardResult::hidden [n, D], without hooks: for callers that want
  // other rows than LogitRows names, or long ones in parts.
  [[nodiscard]] at::Tensor logits_of(const at::Tensor& hidden) const;

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const ModelWeights& weights() const { return weights_; }
  [[nodiscard]] KvCache new_cache() const { return KvCache(config_.layer_count()); }

  [[nodiscard]] Compute compute() const { return options_.compute; }
  // Where the tensors of a pass, and what is trained, lie.
  [[nodiscard]] at::Device device() const { return device_; }

  // For those who train or adapt the model. What is set must not be an inference tensor.
  [[nodiscard]] ModelWeights& weights_to_change() { return weights_; }
  // Passes that autograd records keep the input of each block alone and compute the block again in
  // the backward pass. Until that has run, the hooks of the pass must live and do the same again;
  // observers see every block twice.
  void recompute_blocks(bool recompute) { recompute_blocks_ = recompute; }
  // Lets go of the checkpoint's pages that lie in memory; those that are read again come back.
  void release_pages() const;

 private:
  struct Pass;
  struct HeadStates;
  struct KeysAndValues {
    at::Tensor keys;    // [n, H, K]
    at::Tensor values;  // [n, H, V]
  };

  void place_weights();
  void rebuild_caches(std::span<const SequenceInput> batch, const Hooks* hooks) const;
  [[nodiscard]] ForwardResult run(const std::shared_ptr<Pass>& pass, LogitRows rows) const;
  [[nodiscard]] at::Tensor embed(std::span<const SequenceInput> batch) const;
  [[nodiscard]] at::Tensor block(const Pass& pass, std::int64_t layer, at::Tensor stream) const;
  [[nodiscard]] at::Tensor attention(const Pass& pass, std::int64_t layer,
                                     const at::Tensor& input) const;
  [[nodiscard]] HeadStates project(const Pass& pass, std::int64_t layer,
                                   const at::Tensor& input) const;
  [[nodiscard]] HeadStates project_latent(const Pass& pass, std::int64_t layer,
                                          const at::Tensor& input) const;
  [[nodiscard]] bool needs_keys_and_values(const Pass& pass, std::int64_t layer) const;
  [[nodiscard]] bool stays_latent(const SequenceRows& rows) const;
  // Of latents [n, kv_rank] and the key part that the heads share [n, 1, rope_dim].
  [[nodiscard]] KeysAndValues keys_and_values(std::int64_t layer, const at::Tensor& latents,
                                              const at::Tensor& key_part) const;
  [[nodiscard]] at::Tensor attend(const Pass& pass, std::int64_t layer, std::size_t sequence,
                                  AttentionInput input) const;
  [[nodiscard]] at::Tensor attend_latents(const Pass& pass, std::int64_t layer,
                                          std::size_t sequence, const HeadStates& states) const;
  // Of the sequences of one token that continue a cache, all at once: [N, H, V], the other rows
  // undefined; an undefined tensor where each sequence has to be looked at by itself.
  [[nodiscard]] at::Tensor attend_decoding(const Pass& pass, std::int64_t layer,
                                           const HeadStates& states) const;
  // Of sequences without caches, all at once: [N, H, V]; an undefined tensor as above.
  [[nodiscard]] at::Tensor attend_together(const Pass& pass, std::int64_t layer,
                                           const HeadStates& states) const;
  [[nodiscard]] static bool all_alone(const Pass& pass, std::int64_t layer);
  // What the sequence's tokens see: the beginnings it stands behind, then its own; heads first, [G,
  // S, K] and [G, S, V].
  [[nodiscard]] KeysAndValues with_shared(const Pass& pass, std::int64_t layer,
                                          std::size_t sequence, const HeadStates& states) const;
  void refuse_lost_edits(const Pass& pass, std::int64_t layer) const;
  // Whether backward passes keep what products round anyway as bfloat16.
  [[nodiscard]] bool keeps_rounded() const { return compute() == Compute::bf16; }
  [[nodiscard]] at::Tensor ffn(const Pass& pass, std::int64_t layer, const at::Tensor& input) const;
  [[nodiscard]] LinearInput gated_product(const FfnWeights& weights, const at::Tensor& input) const;
  [[nodiscard]] at::Tensor mixture(const Pass& pass, std::int64_t layer,
                                   const at::Tensor& input) const;
  [[nodiscard]] at::Tensor routed_experts(const Pass& pass, std::int64_t layer,
                                          const at::Tensor& input, const at::Tensor& chosen,
                                          const at::Tensor& weights) const;
  [[nodiscard]] at::Tensor final_logits(const Pass& pass, const at::Tensor& hidden,
                                        LogitRows rows) const;
  [[nodiscard]] at::Tensor experts_at_once(std::int64_t layer, const at::Tensor& input,
                                           const std::vector<ExpertRows>& groups,
                                           const at::Tensor& weights) const;
  void read_ahead(const FfnWeights& expert) const;
  void drop_behind(const FfnWeights& expert) const;
  void read_ahead(std::int64_t layer) const;
  void drop_behind(std::int64_t layer) const;

  const Checkpoint& checkpoint_;
  ModelConfig config_;
  ModelOptions options_;
  at::Device device_;
  ModelWeights weights_;
  bool recompute_blocks_ = false;
};

}  // namespace onset
