// Attention of many sequences without caches in one call: what evaluation does, whose sequences are
// short and stand behind beginnings that several of them share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace onset {

// Keys and values of consecutive positions, where they lie: of position j and key-value head g at
// keys + j * key_step + g * key_group, contiguous.
struct KeySegment {
  const float* keys = nullptr;
  const float* values = nullptr;
  std::int64_t count = 0;  // positions
  std::int64_t key_step = 0;
  std::int64_t value_step = 0;
  std::int64_t key_group = 0;
  std::int64_t value_group = 0;

  [[nodiscard]] bool operator==(const KeySegment&) const = default;
};

// Rows [row, row + count) of the queries, which are the last of the positions of `seen`; each sees
// those up to its own.
struct PackedQueries {
  std::int64_t row = 0;
  std::int64_t count = 0;
  std::vector<KeySegment> seen = {};
};

struct PackedAttention {
  std::int64_t groups = 0;     // G; the query heads h G/H .. share key-value head h
  std::int64_t value_dim = 0;  // V
  std::int64_t window = 0;     // the last positions that are seen; 0: all
  double scale = 1.0;          // times q k^T
};

// Whether the sequences can be dealt out to the threads so that none has much more to do than
// another. A few long ones had better be worked on one by one, each by all threads.
[[nodiscard]] bool suits_packed_attention(std::span<const PackedQueries> sequences,
                                          const PackedAttention& attention);

// softmax(scale q k^T) v for all rows; q [N, H, K] and out [N, H, V] contiguous, float32. A segment
// that several sequences in a row begin with is read once by each thread that needs it. Needs
// has_tiles(TileType::f32). Not differentiable.
void attend_packed(const at::Tensor& q, std::span<const PackedQueries> sequences,
                   const PackedAttention& attention, const at::Tensor& out);

}  // namespace onset
