// Tensors on the device that a model is computed on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "onset/model/device.h"

namespace onset {

[[nodiscard]] at::Device torch_device(const Device& device);

// int64 [n] on the device of `beside`: rows, ids and other numbers that index it.
[[nodiscard]] at::Tensor indices(std::span<const std::int64_t> values, const at::Tensor& beside);

}  // namespace onset
