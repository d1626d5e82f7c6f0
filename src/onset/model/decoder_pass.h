// One forward call under way. Inside the model room.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "onset/model/decoder.h"
#include "onset/model/layers.h"

namespace onset {

[[nodiscard]] at::ScalarType residual_type(Compute compute);

// The length of the sequence that RoPE is chosen for.
[[nodiscard]] std::int64_t rope_length(const SequenceInput& input);

// What stays the same through one forward call.
struct Decoder::Pass {
  std::span<const SequenceInput> batch;
  std::vector<SequenceRows> sequences;
  std::int64_t rows = 0;
  std::int64_t layers = 0;  // blocks to run
  const Hooks* hooks = nullptr;
  std::vector<RopeTable> ropes;  // of each of the configuration's RoPE sets
  std::vector<SequenceInput> kept;

  Pass(const Decoder& decoder, std::span<const SequenceInput> inputs, const Hooks* asked);

  // For a pass that outlives its call. Throws std::logic_error for sequences with a cache.
  void keep_batch();

  [[nodiscard]] bool wants(SiteKind kind, std::int64_t layer) const {
    return hooks != nullptr && hooks->wants({kind, layer});
  }
  // Whether what leaves the site may differ from what came to it.
  [[nodiscard]] bool edits(SiteId site) const { return hooks != nullptr && hooks->edits(site); }
  // The tensor as it leaves the site.
  [[nodiscard]] at::Tensor at(SiteKind kind, std::int64_t layer, at::Tensor tensor,
                              std::int64_t sequence = -1) const {
    if (!wants(kind, layer)) return tensor;
    return hooks->run({.site = {kind, layer}, .sequences = sequences, .sequence = sequence},
                      std::move(tensor));
  }
  // Of a site of one expert: the tensor holds the packed rows that were sent to it.
  [[nodiscard]] at::Tensor at_expert(SiteId site, std::span<const std::int64_t> packed_rows,
                                     at::Tensor tensor) const {
    if (!wants(site.kind, site.layer)) return tensor;
    return hooks->run({.site = site, .sequences = sequences, .rows = packed_rows},
                      std::move(tensor));
  }
};

}  // namespace onset
