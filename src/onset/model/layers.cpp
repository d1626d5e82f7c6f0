#include "onset/model/layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "onset/kernels/elementwise.h"
#include "onset/kernels/elementwise_gradients.h"
#include "onset/kernels/gradient.h"
#include "onset/kernels/own_kernels.h"

namespace onset {
namespace {

// What the kernels of elementwise_gradients.h take.
bool suits_kernels(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && tensor.is_contiguous() && suits_own_kernels(tensor);
}

at::Tensor recorded_rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  return with_gradient({x, gain}, {x, gain},
                       {.forward = [&] { return fused_rms_norm(x, gain, eps); },
                        .backward =
                            [eps](const GradientCall& call) {
                              const NormGradients gradients =
                                  rms_norm_gradients(call.output_gradient.contiguous(),
                                                     call.saved[0], call.saved[1], eps);
                              return std::vector<at::Tensor>{gradients.x, gradients.gain};
                            }});
}

at::Tensor recorded_rotation(const at::Tensor& x, const RopeTable& table) {
  return with_gradient({x}, {},
                       {.forward = [&] { return fused_rotate(x, table.cos, table.sin); },
                        .backward =
                            [table](const GradientCall& call) {
                              // Turned back: the transpose of a rotation.
                              return std::vector<at::Tensor>{fused_rotate(
                                  call.output_gradient.contiguous(), table.cos, table.sin.neg())};
                            }});
}

LinearInput recorded_silu_gated(const at::Tensor& gate, const at::Tensor& up, bool rounded) {
  const auto kept = [rounded](const at::Tensor& t) {
    return rounded ? t.detach().to(at::kBFloat16) : t.detach();
  };
  const std::vector<at::Tensor> both{kept(gate), kept(up)};
  const at::Tensor product =
      with_gradient({gate, up}, both,
                    {.forward = [&] { return fused_silu_gated(gate, up); },
                     .backward =
                         [](const GradientCall& call) {
                           const GatedGradients gradients = silu_gated_gradients(
                               call.output_gradient.contiguous(), call.saved[0], call.saved[1]);
                           return std::vector<at::Tensor>{gradients.gate, gradients.up};
                         }});
  return {product, {.tensors = both, .restored = [](std::span<const at::Tensor> tensors) {
                      return fused_silu_gated(tensors[0], tensors[1]);
                    }}};
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  if (elementwise_applies(x) && elementwise_applies(gain)) return fused_rms_norm(x, gain, eps);
  if (suits_kernels(x) && suits_kernels(gain)) return recorded_rms_norm(x, gain, eps);
  const at::Tensor scale = x.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  return x.mul(scale).mul(gain);
}

RopeTable rope_table(std::span<const RopeFrequencies> frequencies,
                     std::span<const SequenceRows> sequences, const at::TensorOptions& options) {
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
  return {cos.to(options), sin.to(options)};
}

at::Tensor soft_cap(const at::Tensor& x, double cap) {
  return cap > 0 ? x.div(cap).tanh().mul(cap) : x;
}

at::Tensor rotate(const at::Tensor& x, const RopeTable& table) {
  if (elementwise_applies(x)) return fused_rotate(x, table.cos, table.sin);
  if (suits_kernels(x)) return recorded_rotation(x, table);
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

LinearInput gated(Activation activation, const at::Tensor& gate, const at::Tensor& up,
                  bool rounded) {
  switch (activation) {
    case Activation::gelu_tanh:
      return at::gelu(gate, "tanh").mul(up);
    case Activation::gelu:
      return at::gelu(gate).mul(up);
    case Activation::silu:
      break;
  }
  if (suits_kernels(gate) && suits_kernels(up)) {
    const bool records = records_gradient(gate) || records_gradient(up);
    if (records) return recorded_silu_gated(gate, up, rounded);
    return fused_silu_gated(gate, up);
  }
  return at::silu(gate).mul(up);
}

}  // namespace onset
