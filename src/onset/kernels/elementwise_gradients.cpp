#include "onset/kernels/elementwise_gradients.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "onset/kernels/tile_product.h"
#include "onset/kernels/vector_kernels.h"

namespace onset {
namespace {

constexpr std::int64_t grain = 32 * 1024;
// Rows whose share of a gain's gradient is summed by itself.
constexpr std::int64_t rows_per_sum = 64;

// One row; adds its share of the gain's gradient to `gain_sums`.
void norm_row_gradient(std::span<const float> dy, std::span<const float> x,
                       std::span<const float> gain, double eps, std::span<float> dx,
                       std::span<double> gain_sums) {
  const std::size_t width = x.size();
  double squares = 0;
  double along = 0;  // sum of dy gain x
  for (std::size_t d = 0; d < width; ++d) {
    const auto value = static_cast<double>(x[d]);
    squares += value * value;
    along += static_cast<double>(dy[d]) * static_cast<double>(gain[d]) * value;
  }
  const auto size = static_cast<double>(width);
  const double scale = 1.0 / std::sqrt(squares / size + eps);
  const double back = scale * scale * scale * along / size;
  for (std::size_t d = 0; d < width; ++d) {
    const auto value = static_cast<double>(x[d]);
    const auto g = static_cast<double>(dy[d]);
    gain_sums[d] += g * value * scale;
    dx[d] = static_cast<float>(scale * g * static_cast<double>(gain[d]) - back * value);
  }
}

vectors::RoundedArrays rounded_arrays(const at::Tensor& gate, const at::Tensor& up) {
  const auto bits = [](const at::Tensor& t) {
    return reinterpret_cast<const std::uint16_t*>(t.const_data_ptr<at::BFloat16>());
  };
  return {.gate = bits(gate), .up = bits(up)};
}

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

}  // namespace

NormGradients rms_norm_gradients(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& gain,
                                 double eps) {
  const std::int64_t width = x.size(-1);
  const std::int64_t rows = x.numel() / width;
  const auto size = static_cast<std::size_t>(width);
  const std::int64_t blocks = (rows + rows_per_sum - 1) / rows_per_sum;
  NormGradients result{.x = at::empty_like(x), .gain = at::empty_like(gain)};
  const float* dy_data = dy.const_data_ptr<float>();
  const float* x_data = x.const_data_ptr<float>();
  const std::span<const float> weight(gain.const_data_ptr<float>(), size);
  float* dx_data = result.x.mutable_data_ptr<float>();
  std::vector<double> sums(static_cast<std::size_t>(blocks) * size);
  const bool by_vectors = has_tiles(TileType::f32);
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const std::span<double> own(sums.data() + static_cast<std::size_t>(b) * size, size);
      for (std::int64_t r = b * rows_per_sum; r < std::min(rows, (b + 1) * rows_per_sum); ++r) {
        if (by_vectors) {
          vectors::norm_row_gradient({.dy = dy_data + r * width,
                                      .x = x_data + r * width,
                                      .gain = weight.data(),
                                      .dx = dx_data + r * width,
                                      .gain_sums = own.data(),
                                      .width = width,
                                      .eps = eps});
          continue;
        }
        norm_row_gradient({dy_data + r * width, size}, {x_data + r * width, size}, weight, eps,
                          {dx_data + r * width, size}, own);
      }
    }
  });
  float* dgain = result.gain.mutable_data_ptr<float>();
  for (std::size_t d = 0; d < size; ++d) {
    double sum = 0;
    for (std::size_t b = 0; b < static_cast<std::size_t>(blocks); ++b) sum += sums[b * size + d];
    dgain[d] = static_cast<float>(sum);
  }
  return result;
}

at::Tensor fused_silu_gated(const at::Tensor& gate, const at::Tensor& up) {
  if (gate.scalar_type() == at::kFloat) return at::silu(gate).mul_(up);
  if (!has_tiles(TileType::f32)) return at::silu(gate.to(at::kFloat)).mul_(up);
  at::Tensor product = at::empty_like(gate, at::kFloat);
  float* to = product.mutable_data_ptr<float>();
  at::parallel_for(0, gate.numel(), grain,
                   [&, arrays = rounded_arrays(gate, up)](std::int64_t begin, std::int64_t end) {
                     vectors::silu_gated(arrays, to, begin, end);
                   });
  return product;
}

GatedGradients silu_gated_gradients(const at::Tensor& dy, const at::Tensor& gate,
                                    const at::Tensor& up) {
  const bool rounded = gate.scalar_type() == at::kBFloat16;
  if (rounded && !has_tiles(TileType::f32)) {
    return silu_gated_gradients(dy, gate.to(at::kFloat), up.to(at::kFloat));
  }
  GatedGradients result{.gate = at::empty_like(dy), .up = at::empty_like(dy)};
  const float* dy_data = dy.const_data_ptr<float>();
  float* dgate = result.gate.mutable_data_ptr<float>();
  float* dup = result.up.mutable_data_ptr<float>();
  const vectors::GatedGradientArrays gradients{.dy = dy_data, .dgate = dgate, .dup = dup};
  const auto by_vectors = [&](const auto& arrays) {
    at::parallel_for(0, dy.numel(), grain, [&](std::int64_t begin, std::int64_t end) {
      vectors::silu_gated_gradients(arrays, gradients, begin, end);
    });
    return result;
  };
  if (rounded) return by_vectors(rounded_arrays(gate, up));
  const float* gate_data = gate.const_data_ptr<float>();
  const float* up_data = up.const_data_ptr<float>();
  if (has_tiles(TileType::f32)) {
    return by_vectors(vectors::GatedArrays<float>{.gate = gate_data, .up = up_data});
  }
  // silu'(g) = s (1 + g (1 - s)) with s = sigmoid(g).
  at::parallel_for(0, gate.numel(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = gate_data[i];
      const float s = sigmoid(g);
      dup[i] = dy_data[i] * g * s;
      dgate[i] = dy_data[i] * up_data[i] * s * (1.0F + g * (1.0F - s));
    }
  });
  return result;
}

}  // namespace onset
