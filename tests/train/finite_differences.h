// Gradients by central differences, for tests with torch in float64.
#pragma once

#include <ATen/ATen.h>

#include <functional>

namespace onset::testing {

// d f / d x_i = (f(x + h e_i) - f(x - h e_i)) / 2h for each entry of x: float64, [N].
inline at::Tensor finite_differences(const std::function<double(const at::Tensor&)>& function,
                                     const at::Tensor& x, double step = 1e-5) {
  at::Tensor gradient = at::zeros_like(x);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const at::Tensor nudge = at::zeros_like(x);
    nudge[i] = step;
    gradient[i] = (function(x + nudge) - function(x - nudge)) / (2 * step);
  }
  return gradient;
}

// The gradient that autograd gives a scalar function at x.
inline at::Tensor autograd_of(const std::function<at::Tensor(const at::Tensor&)>& function,
                              const at::Tensor& x) {
  at::Tensor leaf = x.clone();
  leaf.requires_grad_();
  function(leaf).backward();
  return leaf.grad();
}

inline at::Tensor doubles(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

}  // namespace onset::testing
