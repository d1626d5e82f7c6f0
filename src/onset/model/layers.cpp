#include "onset/model/layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "onset/kernels/elementwise.h"

namespace onset {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  if (elementwise_applies(x) && elementwise_applies(gain)) return fused_rms_norm(x, gain, eps);
  const at::Tensor scale = x.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  return x.mul(scale).mul(gain);
}

RopeTable rope_table(std::span<const RopeFrequencies> frequencies,
                     std::span<const SequenceRows> sequences, at::ScalarType type) {
  const std::int64_t rows = sequences.back().row + sequences.back().count;
  const auto half = static_cast<std::int64_t>(frequencies.front().inverse.size());
  at::Tensor cos = at::empty({rows, half}, at::TensorOptions().dtype(at::kDouble));
  at::Tensor sin = at::empty_like(cos);
  auto* cos_out = cos.mutable_data_ptr<double>();
  auto* sin_out = sin.mutable_data_ptr<double>();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::int64_t i = 0; i < sequences[s].count; ++i) {
      const auto position = static_cast<float>(sequences[s].position + i);
      for (const float inverse : frequencies[s].inverse) {
        const auto angle = static_cast<double>(position * inverse);
        *cos_out++ = std::cos(angle) * frequencies[s].scale;
        *sin_out++ = std::sin(angle) * frequencies[s].scale;
      }
    }
  }
  return {cos.to(type), sin.to(type)};
}

at::Tensor soft_cap(const at::Tensor& x, double cap) {
  return cap > 0 ? x.div(cap).tanh().mul(cap) : x;
}

at::Tensor rotate(const at::Tensor& x, const RopeTable& table) {
  if (elementwise_applies(x)) return fused_rotate(x, table.cos, table.sin);
  const std::int64_t half = table.cos.size(1);
  const std::int64_t rest = x.size(2) - 2 * half;
  const at::Tensor cos = table.cos.unsqueeze(1);  // [N, 1, half]
  const at::Tensor sin = table.sin.unsqueeze(1);
  const at::Tensor first = x.narrow(2, 0, half);
  const at::Tensor second = x.narrow(2, half, half);
  const at::Tensor turned_first = first.mul(cos).sub(second.mul(sin));
  const at::Tensor turned_second = second.mul(cos).add(first.mul(sin));
  if (rest == 0) return at::cat({turned_first, turned_second}, 2);
  return at::cat({turned_first, turned_second, x.narrow(2, 2 * half, rest)}, 2);
}

at::Tensor gated(Activation activation, const at::Tensor& gate, const at::Tensor& up) {
  switch (activation) {
    case Activation::gelu_tanh:
      return at::gelu(gate, "tanh").mul(up);
    case Activation::gelu:
      return at::gelu(gate).mul(up);
    case Activation::silu:
      break;
  }
  const at::Tensor activated = at::silu(gate);
  return elementwise_applies(activated) ? at::Tensor(activated).mul_(up) : activated.mul(up);
}

}  // namespace onset
