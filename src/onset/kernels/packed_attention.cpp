#include "onset/kernels/packed_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>

#include "onset/kernels/tile_attention.h"

namespace onset {
namespace {

std::int64_t positions_of(const PackedQueries& sequence) {
  std::int64_t sum = 0;
  for (const KeySegment& segment : sequence.seen) sum += segment.count;
  return sum;
}

// Of one key-value head, in products of a query and a key.
std::int64_t cost_of(const PackedQueries& sequence) {
  return sequence.count * positions_of(sequence);
}

// One key-value head of what a sequence sees, one segment after the other, as the tiles want it.
// What the next sequence sees too is kept.
class SeenKeys {
 public:
  SeenKeys(std::int64_t group, std::int64_t dim, std::int64_t value_dim, std::int64_t most)
      : group_(group),
        dim_(dim),
        value_dim_(value_dim),
        stride_(most),
        keys_(static_cast<std::size_t>(most * dim)),
        values_(static_cast<std::size_t>(most * value_dim)) {}

  [[nodiscard]] std::int64_t group() const { return group_; }
  [[nodiscard]] const float* keys() const { return keys_.data(); }
  [[nodiscard]] const float* values() const { return values_.data(); }  // [V, value_stride()]
  [[nodiscard]] std::int64_t value_stride() const { return stride_; }

  void see(const std::vector<KeySegment>& segments) {
    const auto same = static_cast<std::size_t>(
        std::mismatch(held_.begin(), held_.end(), segments.begin(), segments.end()).first -
        held_.begin());
    std::int64_t position = 0;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (s >= same) copy(segments[s], position);
      position += segments[s].count;
    }
    held_ = segments;
  }

 private:
  void copy(const KeySegment& segment, std::int64_t position) {
    const float* key = segment.keys + group_ * segment.key_group;
    const float* value = segment.values + group_ * segment.value_group;
    for (std::int64_t j = 0; j < segment.count; ++j) {
      std::copy_n(key + j * segment.key_step, dim_, keys_.data() + (position + j) * dim_);
    }
    // A line of the transposed values at a time.
    constexpr std::int64_t line = 16;
    for (std::int64_t begin = 0; begin < segment.count; begin += line) {
      const std::int64_t end = std::min(begin + line, segment.count);
      for (std::int64_t d = 0; d < value_dim_; ++d) {
        float* to = values_.data() + d * stride_ + position;
        for (std::int64_t j = begin; j < end; ++j) to[j] = value[j * segment.value_step + d];
      }
    }
  }

  std::int64_t group_;
  std::int64_t dim_;
  std::int64_t value_dim_;
  std::int64_t stride_;
  std::vector<float> keys_;    // [most, K]
  std::vector<float> values_;  // [V, most]
  std::vector<KeySegment> held_ = {};
};

}  // namespace

bool suits_packed_attention(std::span<const PackedQueries> sequences,
                            const PackedAttention& attention) {
  std::int64_t all = 0;
  std::int64_t largest = 0;
  for (const PackedQueries& sequence : sequences) {
    all += cost_of(sequence);
    largest = std::max(largest, cost_of(sequence));
  }
  const std::int64_t threads = at::get_num_threads();
  return threads == 1 || largest * 4 * threads <= all * attention.groups;
}

void attend_packed(const at::Tensor& q, std::span<const PackedQueries> sequences,
                   const PackedAttention& attention, const at::Tensor& out) {
  const std::int64_t heads = q.size(1) / attention.groups;
  const std::int64_t dim = q.size(2);
  const std::int64_t value_dim = attention.value_dim;
  const float* q_data = q.const_data_ptr<float>();
  float* out_data = out.mutable_data_ptr<float>();
  std::int64_t most = 0;
  std::vector<std::int64_t> ends;  // of the sequences, by the cost of one key-value head
  for (const PackedQueries& sequence : sequences) {
    most = std::max(most, positions_of(sequence));
    ends.push_back((ends.empty() ? 0 : ends.back()) + cost_of(sequence));
  }
  if (ends.empty()) return;
  const std::int64_t cost = ends.back();
  const auto attend = [&](SeenKeys& seen, const PackedQueries& sequence) {
    seen.see(sequence.seen);
    const std::int64_t head = (sequence.row * attention.groups + seen.group()) * heads;
    const TileAttention tile{.q = q_data + head * dim,
                             .keys = seen.keys(),
                             .values = seen.values(),
                             .value_stride = seen.value_stride(),
                             .out = out_data + head * value_dim,
                             .queries = sequence.count,
                             .heads = heads,
                             .dim = dim,
                             .value_dim = value_dim,
                             .query_stride = q.size(1) * dim,
                             .out_stride = q.size(1) * value_dim,
                             .seen = positions_of(sequence),
                             .window = attention.window,
                             .scale = static_cast<float>(attention.scale)};
    for (std::int64_t b = 0; b < blocks_of(tile); ++b) attend_tile(tile, b);
  };
  // All sequences of a head, then those of the next, dealt out by their cost: a sequence belongs to
  // the thread in whose share it ends.
  const std::int64_t threads = at::get_num_threads();
  at::parallel_for(0, threads, 1, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t from = cost * attention.groups * first / threads;
    const std::int64_t to = cost * attention.groups * last / threads;
    for (std::int64_t group = from / cost; group < attention.groups && group * cost < to; ++group) {
      SeenKeys seen(group, dim, value_dim, most);
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        const std::int64_t end = group * cost + ends[s];
        if (end > from && end <= to) attend(seen, sequences[s]);
      }
    }
  });
}

}  // namespace onset
