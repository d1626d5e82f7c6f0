#include "onset/kernels/log_probabilities.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <atomic>
#include <cmath>

#include "onset/kernels/tile_product.h"
#include "onset/kernels/vector_kernels.h"

namespace onset {
namespace {

LogProbabilities by_libtorch(const at::Tensor& logits, const at::Tensor& tokens,
                             const at::Tensor& factors) {
  const at::Tensor largest = logits.amax(1, /*keepdim=*/true);
  const at::Tensor own = logits.gather(1, tokens);
  const auto correct = own.ge(largest).sum().item<std::int64_t>();
  logits.sub_(largest).exp_();
  const at::Tensor sum = logits.sum(1, /*keepdim=*/true);
  logits.div_(sum);
  logits.scatter_add_(1, tokens, at::full_like(own, -1.0));
  logits.mul_(factors.unsqueeze(1));
  return {.values = own.sub(largest).sub_(sum.log()).squeeze(1), .correct = correct};
}

}  // namespace

LogProbabilities take_log_probabilities(const at::Tensor& logits, const at::Tensor& tokens,
                                        const at::Tensor& factors) {
  if (!has_tiles(TileType::f32)) return by_libtorch(logits, tokens, factors);
  const std::int64_t width = logits.size(1);
  LogProbabilities result{.values = at::empty({logits.size(0)}, logits.options())};
  const at::Tensor scales = factors.contiguous();
  const at::Tensor chosen = tokens.contiguous();
  auto* rows = logits.mutable_data_ptr<float>();
  const auto* token_of = chosen.const_data_ptr<std::int64_t>();
  const auto* factor_of = scales.const_data_ptr<float>();
  auto* values = result.values.mutable_data_ptr<float>();
  std::atomic<std::int64_t> correct{0};
  at::parallel_for(0, logits.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* row = rows + i * width;
      float& at_token = row[token_of[i]];
      const float own = at_token;
      const vectors::SoftRow soft = vectors::soften_row(row, width);
      if (own >= soft.largest) ++correct;
      values[i] = static_cast<float>(static_cast<double>(own) - static_cast<double>(soft.largest) -
                                     std::log(soft.sum));
      const float factor = factor_of[i];
      vectors::scale_row(row, width, static_cast<float>(static_cast<double>(factor) / soft.sum));
      at_token -= factor;
    }
  });
  result.correct = correct;
  return result;
}

}  // namespace onset
