// The keys and values of one sequence, kept between forward calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace onset {

// Keys after RoPE and values, [G, positions, K] per layer; with latent attention instead the normed
// latent and the rotated key part behind it, as keys of one head [1, positions, kv_rank +
// rope_dim], and no values. Grows as needed. A forward call that is given a cache continues at
// position length(); it appends to every layer and advances the length once, so that a call that
// throws leaves the length, and with it the content, as it was.
class KvCache {
 public:
  explicit KvCache(std::int64_t layer_count) : layers_(static_cast<std::size_t>(layer_count)) {}

  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(ids_.size()); }
  // The tokens whose keys and values it holds.
  [[nodiscard]] const std::vector<std::int64_t>& ids() const { return ids_; }
  // Forgets the positions from `length` on.
  void truncate(std::int64_t length);
  // A cache of its own with the first `length` positions, at most length().
  [[nodiscard]] KvCache prefix_copy(std::int64_t length) const;
  // Memory of the keys and values, the room to grow included.
  [[nodiscard]] std::int64_t bytes() const;

  struct View {
    at::Tensor keys;    // [G, S, K], S = length() + new positions
    at::Tensor values;  // [G, S, V]; undefined where none are kept
  };
  // Writes keys [T, G, K] and values [T, G, V], which may be undefined, behind the first length()
  // positions of the layer.
  View append(std::int64_t layer, const at::Tensor& keys, const at::Tensor& values);
  // What the layer holds; both undefined where it was never written.
  [[nodiscard]] View kept(std::int64_t layer) const;
  // append() of one position, without a tensor in between: row `row` of contiguous keys [N, G, K]
  // and values [N, G, V]. Where the layer then lies, until the next append.
  struct Place {
    const void* keys = nullptr;    // [G, capacity, K]
    const void* values = nullptr;  // [G, capacity, V]
    std::int64_t capacity = 0;
  };
  Place append_row(std::int64_t layer, const at::Tensor& keys, const at::Tensor& values,
                   std::int64_t row);
  // After all layers: the tokens that were appended, and the length of the sequence that RoPE was
  // chosen for.
  void advance(std::span<const std::int64_t> ids, std::int64_t rope_length) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    rope_length_ = rope_length;
  }
  // The length that RoPE was chosen for when its content was computed (see SequenceInput).
  [[nodiscard]] std::int64_t rope_length() const { return rope_length_; }

 private:
  struct Layer {
    at::Tensor keys;  // [G, capacity, K]
    at::Tensor values;
  };
  std::vector<Layer> layers_;
  std::vector<std::int64_t> ids_;
  std::int64_t rope_length_ = 0;
};

}  // namespace onset
