// What linear layers multiply, and how little of it their backward passes keep.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

namespace onset {

// A tensor as a backward pass keeps it: made again from `tensors`, which autograd watches.
struct KeptInput {
  std::vector<at::Tensor> tensors;
  std::function<at::Tensor(std::span<const at::Tensor>)> restored;
};

// The input [N, in] of one or several linear layers. Made from a tensor without a word, for most
// inputs are nothing more.
class LinearInput {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  LinearInput(at::Tensor x) : x_(std::move(x)) {}
  // An x that is cheaper to make again of what is kept anyway than to keep.
  LinearInput(at::Tensor x, KeptInput source) : x_(std::move(x)), source_(std::move(source)) {}

  [[nodiscard]] const at::Tensor& x() const { return x_; }

  // What a backward pass needs to have x once more. `rounded`: as bfloat16, for products that round
  // it anyway; one copy for all layers that ask. Not to be called on several threads at a time.
  [[nodiscard]] KeptInput kept(bool rounded) const;

 private:
  at::Tensor x_;
  KeptInput source_;
  mutable at::Tensor rounded_;
};

}  // namespace onset
