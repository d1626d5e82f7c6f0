#include "onset/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <limits>

#include "onset/kernels/gradient.h"
#include "onset/kernels/own_kernels.h"
#include "onset/kernels/tile_attention.h"
#include "onset/kernels/tile_product.h"
#include "onset/model/layers.h"

namespace onset {
namespace {

// True where query row i (position S - T + i) sees key j; on the device of the queries.
at::Tensor visible(const at::Tensor& asking, std::int64_t keys, std::int64_t window) {
  const std::int64_t queries = asking.size(0);
  const auto positions = at::TensorOptions().dtype(at::kLong).device(asking.device());
  const at::Tensor q = at::arange(keys - queries, keys, positions).unsqueeze(1);
  const at::Tensor k = at::arange(keys, positions).unsqueeze(0);
  at::Tensor mask = k.le(q);
  if (window > 0) mask = mask.logical_and(k.gt(q - window));
  return mask;
}

// Scores of a block of queries are [H, block, S].
constexpr std::int64_t queries_per_block = 256;

at::Tensor blockwise_attention(const AttentionInput& input) {
  const std::int64_t queries = input.q.size(0);
  const std::int64_t before = input.k.size(1) - queries;
  const auto keep = [](at::Tensor tensor) { return tensor; };
  std::vector<at::Tensor> blocks;
  for (std::int64_t begin = 0; begin < queries; begin += queries_per_block) {
    const std::int64_t count = std::min(queries_per_block, queries - begin);
    AttentionInput block = input;
    block.q = input.q.narrow(0, begin, count);
    block.k = input.k.narrow(1, 0, before + begin + count);
    block.v = input.v.narrow(1, 0, before + begin + count);
    blocks.push_back(explicit_attention(block, keep, keep));
  }
  return blocks.size() == 1 ? blocks.front() : at::cat(blocks, 0);
}

bool suits_tiles(const AttentionInput& input) {
  return input.q.size(0) > 1 && input.q.scalar_type() == at::kFloat &&
         !records_gradient(std::array{input.q, input.k, input.v}) && suits_own_kernels(input.q) &&
         has_tiles(TileType::f32);
}

// Early blocks see fewer keys than late ones: neighbours in this order are one of each.
std::int64_t early_and_late(std::int64_t index, std::int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

at::Tensor attention_by_tiles(const AttentionInput& input) {
  const at::Tensor q = input.q.contiguous();
  const at::Tensor keys = input.k.stride(1) == input.k.size(2) && input.k.stride(2) == 1
                              ? input.k
                              : input.k.contiguous();
  const at::Tensor values = input.v.transpose(1, 2).contiguous();
  const std::int64_t groups = keys.size(0);
  const std::int64_t heads = q.size(1) / groups;
  const std::int64_t value_dim = values.size(1);
  at::Tensor out = at::empty({q.size(0), q.size(1), value_dim}, q.options());
  const auto of_group = [&](std::int64_t group) {
    return TileAttention{.q = q.const_data_ptr<float>() + group * heads * q.size(2),
                         .keys = keys.const_data_ptr<float>() + group * keys.stride(0),
                         .values = values.const_data_ptr<float>() + group * values.stride(0),
                         .out = out.mutable_data_ptr<float>() + group * heads * value_dim,
                         .queries = q.size(0),
                         .heads = heads,
                         .dim = q.size(2),
                         .value_dim = value_dim,
                         .query_stride = q.stride(0),
                         .out_stride = out.stride(0),
                         .seen = keys.size(1),
                         .window = input.window,
                         .scale = static_cast<float>(input.scale)};
  };
  const std::int64_t blocks = blocks_of(of_group(0));
  at::parallel_for(0, groups * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t index = early_and_late(i, groups * blocks);
      attend_tile(of_group(index % groups), index / groups);
    }
  });
  return out;
}

}  // namespace

at::Tensor fused_attention(const AttentionInput& input) {
  const std::int64_t queries = input.q.size(0);
  if (input.softcap > 0) return blockwise_attention(input);
  if (suits_tiles(input)) return attention_by_tiles(input);
  const std::int64_t heads = input.q.size(1);
  const std::int64_t dim = input.q.size(2);
  const std::int64_t groups = input.k.size(0);
  at::Tensor keys = input.k;
  at::Tensor values = input.v;
  if (queries == 1 && input.window > 0 && keys.size(1) > input.window) {
    keys = keys.narrow(1, keys.size(1) - input.window, input.window);
    values = values.narrow(1, values.size(1) - input.window, input.window);
  }
  const std::int64_t seen = keys.size(1);
  // The kernel's batch is the key-value heads; its heads, the queries that share one. The shared
  // keys are repeated by a stride of 0, not copied.
  const at::Tensor q = input.q.view({queries, groups, heads / groups, dim}).permute({1, 2, 0, 3});
  // The kernels without [T, S] in memory want one size for keys and values; zeros add nothing.
  const std::int64_t value_dim = values.size(2);
  if (queries > 1 && value_dim < dim) values = at::constant_pad_nd(values, {0, dim - value_dim});
  const std::vector<std::int64_t> shared{groups, heads / groups, seen, dim};
  const std::vector<std::int64_t> shared_values{groups, heads / groups, seen, values.size(2)};
  const at::Tensor k = keys.unsqueeze(1).expand(shared);
  const at::Tensor v = values.unsqueeze(1).expand(shared_values);
  const bool windowed = input.window > 0 && seen > input.window;
  const bool causal = queries > 1 && queries == seen && !windowed;
  std::optional<at::Tensor> mask;
  if (queries > 1 && !causal) mask = visible(input.q, seen, input.window);
  const at::Tensor out =
      at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, causal, input.scale);
  return out.narrow(3, 0, value_dim).permute({2, 0, 1, 3}).reshape({queries, heads, value_dim});
}

at::Tensor attention_scores(const AttentionInput& input) {
  const std::int64_t queries = input.q.size(0);
  const std::int64_t heads = input.q.size(1);
  const std::int64_t dim = input.q.size(2);
  const std::int64_t groups = input.k.size(0);
  const std::int64_t keys = input.k.size(1);
  const at::Tensor q = input.q.view({queries, groups, heads / groups, dim}).permute({1, 2, 0, 3});
  const at::Tensor scores = at::matmul(q, input.k.unsqueeze(1).transpose(2, 3))
                                .mul(input.scale)
                                .reshape({heads, queries, keys});
  return soft_cap(scores, input.softcap)
      .masked_fill(visible(input.q, keys, input.window).logical_not(),
                   -std::numeric_limits<double>::infinity());
}

at::Tensor explicit_attention(const AttentionInput& input, const AttentionHook& on_scores,
                              const AttentionHook& on_probs) {
  const std::int64_t queries = input.q.size(0);
  const std::int64_t heads = input.q.size(1);
  const std::int64_t groups = input.k.size(0);
  const std::int64_t keys = input.k.size(1);
  const at::Tensor scores = on_scores(attention_scores(input));
  const at::Tensor probs = on_probs(at::softmax(scores, -1));
  const at::Tensor out =
      at::matmul(probs.view({groups, heads / groups, queries, keys}), input.v.unsqueeze(1));
  return out.permute({2, 0, 1, 3}).reshape({queries, heads, input.v.size(2)});
}

}  // namespace onset
