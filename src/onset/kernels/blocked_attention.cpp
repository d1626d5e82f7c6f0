#include "onset/kernels/blocked_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>

#include "onset/kernels/dense_product.h"

namespace onset {
namespace {

// The scores of a block [rows, keys] should stay in the second-level cache.
constexpr std::int64_t block_scores = 128 * 1024;
constexpr std::int64_t min_block_rows = 64;
constexpr std::int64_t max_block_rows = 192;

// The queries [first, first + count) of all heads that share keys and values; the first is at
// `position`. They see keys [begin, end) between them.
struct Block {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t position = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class Kernel {
 public:
  Kernel(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
         const BlockedAttention& options)
      : options_(options),
        count_(q.size(0)),
        groups_(k.size(0)),
        shared_(q.size(1) / groups_),
        keys_(k.size(1)),
        key_dim_(q.size(2)),
        value_dim_(v.size(2)),
        queries_(q.mul(options.scale)
                     .view({count_, groups_, shared_, key_dim_})
                     .transpose(0, 1)
                     .contiguous()),
        key_rows_(k.contiguous()),
        value_columns_(v.transpose(1, 2).contiguous()),
        out_(at::empty({count_, groups_ * shared_, value_dim_}, q.options())) {}

  at::Tensor run() {
    const std::int64_t rows = std::clamp(block_scores / keys_, min_block_rows, max_block_rows);
    const std::int64_t count = std::max<std::int64_t>(1, rows / shared_);
    const std::int64_t blocks = (count_ + count - 1) / count;
    at::parallel_for(0, blocks * groups_, 1, [&](std::int64_t task, std::int64_t last) {
      const c10::InferenceMode inference;
      for (; task < last; ++task) {
        const std::int64_t first = task / groups_ * count;
        attend(block_at(first, std::min(count, count_ - first)), task % groups_);
      }
    });
    return out_;
  }

 private:
  [[nodiscard]] Block block_at(std::int64_t first, std::int64_t count) const {
    const std::int64_t position = keys_ - count_ + first;
    const std::int64_t begin =
        options_.window > 0 ? std::max<std::int64_t>(0, position - options_.window + 1) : 0;
    return {first, count, position, begin, position + count};
  }

  void attend(const Block& block, std::int64_t group) {
    const std::int64_t rows = block.count * shared_;
    const std::int64_t width = block.end - block.begin;
    at::Tensor scores = panel_product(
        {.x =
             queries_.const_data_ptr<float>() + (group * count_ + block.first) * shared_ * key_dim_,
         .n = rows,
         .rows = key_rows_.const_data_ptr<float>() + (group * keys_ + block.begin) * key_dim_,
         .count = width,
         .columns = key_dim_,
         .row_stride = key_dim_});
    to_probabilities(block, scores);
    const at::Tensor heads = panel_product(
        {.x = scores.const_data_ptr<float>(),
         .n = rows,
         .rows = value_columns_.const_data_ptr<float>() + group * value_dim_ * keys_ + block.begin,
         .count = value_dim_,
         .columns = width,
         .row_stride = keys_});
    const float* from = heads.const_data_ptr<float>();
    const std::int64_t together = shared_ * value_dim_;
    float* to =
        out_.mutable_data_ptr<float>() + block.first * groups_ * together + group * together;
    for (std::int64_t i = 0; i < block.count; ++i) {
      std::copy_n(from + i * together, together, to + i * groups_ * together);
    }
  }

  // In place; scores are [count * shared, end - begin].
  void to_probabilities(const Block& block, at::Tensor& scores) const {
    if (options_.softcap > 0) scores.div_(options_.softcap).tanh_().mul_(options_.softcap);
    constexpr float unseen = -std::numeric_limits<float>::infinity();
    const std::int64_t width = scores.size(1);
    float* row = scores.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < scores.size(0); ++i, row += width) {
      const std::int64_t seen = block.position + i / shared_ + 1 - block.begin;
      std::fill(row + seen, row + width, unseen);
      if (options_.window > 0) {
        std::fill(row, row + std::max<std::int64_t>(0, seen - options_.window), unseen);
      }
    }
    at::softmax_out(scores, scores, -1);
  }

  BlockedAttention options_;
  std::int64_t count_;   // T
  std::int64_t groups_;  // G
  std::int64_t shared_;  // H / G
  std::int64_t keys_;    // S
  std::int64_t key_dim_;
  std::int64_t value_dim_;
  at::Tensor queries_;        // [G, T, H / G, K], scaled
  at::Tensor key_rows_;       // [G, S, K]
  at::Tensor value_columns_;  // [G, V, S]
  at::Tensor out_;            // [T, H, V]
};

}  // namespace

at::Tensor blocked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const BlockedAttention& options) {
  return Kernel(q, k, v, options).run();
}

}  // namespace onset
