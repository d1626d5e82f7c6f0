// The element-wise parts of a block.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "onset/model/config.h"
#include "onset/model/hooks.h"
#include "onset/model/linear_input.h"
#include "onset/model/rope.h"

namespace onset {

// x * gain / sqrt(mean(x^2) + eps) over the last dimension, in the type of x (at least float32).
[[nodiscard]] at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

struct RopeTable {
  at::Tensor cos;  // [N, rotary_dim / 2]
  at::Tensor sin;
};

// For the positions of the packed rows, with the frequencies of each sequence. Angles are float32
// products of position and frequency, as the reference implementations compute them. `options`: the
// type and the device of the table.
[[nodiscard]] RopeTable rope_table(std::span<const RopeFrequencies> frequencies,
                                   std::span<const SequenceRows> sequences,
                                   const at::TensorOptions& options);

// cap * tanh(x / cap); x itself for a cap of 0.
[[nodiscard]] at::Tensor soft_cap(const at::Tensor& x, double cap);

// Turns the leading rotary dims of each head: x [N, heads, K]; dims i and i + rotary/2 are a pair.
[[nodiscard]] at::Tensor rotate(const at::Tensor& x, const RopeTable& table);

// act(gate) * up. Where it is recorded, a backward pass keeps gate and up alone and makes the
// product again; `rounded`: it keeps them as bfloat16.
[[nodiscard]] LinearInput gated(Activation activation, const at::Tensor& gate, const at::Tensor& up,
                                bool rounded);

}  // namespace onset
