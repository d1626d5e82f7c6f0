// Which tensors the kernels of this room work on.
#pragma once

#include <ATen/core/Tensor.h>

namespace onset {

// Whether the tensor lies in this process's memory. What lies on another device goes through plain
// tensor operations instead, in every place that has a kernel of its own.
[[nodiscard]] inline bool suits_own_kernels(const at::Tensor& tensor) { return tensor.is_cpu(); }

}  // namespace onset
