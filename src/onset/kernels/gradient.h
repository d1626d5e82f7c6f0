// Operations with gradients of our own: what libtorch's autograd calls for kernels that it does not
// know. The only place that needs autograd's headers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace onset {

// What a backward function is given.
struct GradientCall {
  const at::Tensor& output_gradient;
  std::span<const at::Tensor> saved;  // what the operation saved
  // Whether the gradient of input i is asked for; the others may be left undefined.
  std::function<bool(std::size_t input)> wanted;
};

// Gradients of the inputs in their order; undefined where there is none.
using GradientFunction = std::function<std::vector<at::Tensor>(const GradientCall&)>;

// An operation: `forward` computes the output from the inputs, without autograd. What it returns
// must be a new tensor. `saved` are kept for the backward pass, which fails where one of them was
// written to meanwhile. Second derivatives are not supported.
struct GradientOperation {
  std::function<at::Tensor()> forward;
  GradientFunction backward;
};

// Runs the operation and, where autograd is on and an input needs gradients, hangs it into the
// graph. `inputs` may hold undefined tensors.
[[nodiscard]] at::Tensor with_gradient(const std::vector<at::Tensor>& inputs,
                                       const std::vector<at::Tensor>& saved,
                                       GradientOperation operation);

// Whether a gradient of any of them would be recorded now.
[[nodiscard]] bool records_gradient(std::span<const at::Tensor> tensors);
[[nodiscard]] bool records_gradient(const at::Tensor& tensor);

// compute(input) with nothing of it kept but the input: the backward pass computes it again
// ("activation checkpointing", Chen et al. 2016, arXiv 1604.06174). Gradients of the parameters
// that `compute` uses are added to their .grad by the backward pass. `compute` must give the same
// again, and what it refers to must live until then; it runs once under no-grad and once recorded.
[[nodiscard]] at::Tensor recomputed(const at::Tensor& input,
                                    std::function<at::Tensor(const at::Tensor&)> compute);

}  // namespace onset
