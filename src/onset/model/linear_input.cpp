#include "onset/model/linear_input.h"

#include <ATen/ATen.h>

namespace onset {

KeptInput LinearInput::kept(bool rounded) const {
  if (source_.restored) return source_;
  const auto itself = [](std::span<const at::Tensor> tensors) { return tensors.front(); };
  if (!rounded) return {.tensors = {x_}, .restored = itself};
  if (!rounded_.defined()) rounded_ = x_.detach().to(at::kBFloat16);
  return {.tensors = {rounded_}, .restored = itself};
}

}  // namespace onset
