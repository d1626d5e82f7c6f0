// AdamW (Loshchilov and Hutter 1711.05101), by libtorch's fused kernel, with its state in our hands
// so that it can be saved and read back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "onset/train/gradients.h"
#include "onset/train/optimizer_options.h"

namespace onset {

// Of one tensor, in its type and on its device.
struct AdamWMoments {
  at::Tensor steps;   // [], float32: updates so far
  at::Tensor first;   // mean of gradients, of the tensor's shape
  at::Tensor second;  // mean of their squares
};

class AdamW {
 public:
  // Takes memory for two moments a parameter. Throws usage errors for options out of their range,
  // for a tensor listed twice and for one that takes no gradient.
  AdamW(std::vector<Parameter> parameters, const AdamWOptions& options);

  // One update, t from 1:
  //   w <- w (1 - lr wd);  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
  //   w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
  // A tensor without a gradient stays as it is, its t too.
  void step(double learning_rate);

  [[nodiscard]] std::span<const Parameter> parameters() const { return parameters_; }
  // Beside parameters(), to be saved, and to be overwritten in place on resuming.
  [[nodiscard]] std::span<const AdamWMoments> moments() const { return moments_; }

 private:
  void step_group(bool decaying, double learning_rate);

  std::vector<Parameter> parameters_;
  std::vector<AdamWMoments> moments_;
  AdamWOptions options_;
};

// The memory that moments take for so many trained elements of so many bytes each.
[[nodiscard]] constexpr std::int64_t adamw_bytes(std::int64_t elements,
                                                 std::int64_t element_bytes) {
  return 2 * elements * element_bytes;
}

}  // namespace onset
