// A tensor that is trained.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace onset {

// A leaf of autograd under the name that files and messages know it by; its gradient is
// value.grad().
struct Parameter {
  std::string name;
  at::Tensor value;
};

}  // namespace onset
