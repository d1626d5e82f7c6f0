#include "onset/train/gradients.h"

#include <ATen/ATen.h>

#include <cmath>

#include "onset/base/error.h"

namespace onset {
namespace {

constexpr double norm_epsilon = 1e-6;  // as torch.nn.utils.clip_grad_norm_

void scale_gradients(std::span<const Parameter> parameters, double norm, double max_norm) {
  if (!(max_norm >= 0)) {
    throw usage_error(str_cat("gradients are clipped to a norm of ", max_norm, ", expected 0 up"));
  }
  const double factor = max_norm / (norm + norm_epsilon);
  if (max_norm == 0 || factor >= 1) return;
  for (const Parameter& parameter : parameters) {
    const at::Tensor& gradient = parameter.value.grad();
    if (gradient.defined()) gradient.detach().mul_(factor);
  }
}

Error not_finite(std::span<const Parameter> parameters) {
  const auto names = non_finite_gradients(parameters);
  const char* hint = "lower the learning rate; with bf16, try without";
  if (names.empty()) {
    return input_error("the norm of the gradients is too large for a number", hint);
  }
  std::string message =
      str_cat("the gradient of ", names.front(), " is not finite (NaN or infinite)");
  if (names.size() > 1) {
    message += str_cat(", nor are those of ", names.size() - 1, " more of ", parameters.size(),
                       " tensors");
  }
  return input_error(message, hint);
}

}  // namespace

std::int64_t element_count(std::span<const Parameter> parameters) {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) count += parameter.value.numel();
  return count;
}

double gradient_norm(std::span<const Parameter> parameters) {
  double squares = 0;
  for (const Parameter& parameter : parameters) {
    const at::Tensor& gradient = parameter.value.grad();
    if (!gradient.defined()) continue;
    const auto norm = at::linalg_vector_norm(gradient.detach(), 2).item<double>();
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

std::vector<std::string> non_finite_gradients(std::span<const Parameter> parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) {
    const at::Tensor& gradient = parameter.value.grad();
    if (!gradient.defined()) continue;
    if (!gradient.detach().isfinite().all().item<bool>()) names.push_back(parameter.name);
  }
  return names;
}

double clip_gradients(std::span<const Parameter> parameters, double max_norm) {
  const auto norm = clip_gradients_if_finite(parameters, max_norm);
  if (!norm) throw not_finite(parameters);
  return *norm;
}

std::optional<double> clip_gradients_if_finite(std::span<const Parameter> parameters,
                                               double max_norm) {
  const double norm = gradient_norm(parameters);
  if (!std::isfinite(norm)) return std::nullopt;
  scale_gradients(parameters, norm, max_norm);
  return norm;
}

void clear_gradients(std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) parameter.value.mutable_grad().reset();
}

}  // namespace onset
