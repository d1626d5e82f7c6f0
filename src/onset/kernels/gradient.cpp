#include "onset/kernels/gradient.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

namespace onset {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Held : torch::CustomClassHolder {
  GradientFunction backward;
};

constexpr const char* held_key = "held";

class Recorded : public torch::autograd::Function<Recorded> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList inputs,
                            const std::vector<at::Tensor>& saved, GradientOperation& operation) {
    static_cast<void>(inputs);
    auto held = c10::make_intrusive<Held>();
    held->backward = std::move(operation.backward);
    context->saved_data[held_key] = at::IValue::make_capsule(std::move(held));
    context->save_for_backward(saved);
    return operation.forward();
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data[held_key].toCapsule();
    const auto& held = static_cast<const Held&>(*capsule);
    const variable_list saved = context->get_saved_variables();
    variable_list result = held.backward(
        {.output_gradient = gradients.front(),
         .saved = saved,
         .wanted = [context](std::size_t input) { return context->needs_input_grad(input); }});
    // forward's arguments behind the inputs are no tensors to differentiate by.
    result.resize(result.size() + 2);
    return result;
  }
};

}  // namespace

bool records_gradient(const at::Tensor& tensor) {
  return c10::GradMode::is_enabled() && tensor.defined() && tensor.requires_grad();
}

bool records_gradient(std::span<const at::Tensor> tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return records_gradient(tensor); });
}

at::Tensor with_gradient(const std::vector<at::Tensor>& inputs,
                         const std::vector<at::Tensor>& saved, GradientOperation operation) {
  if (!records_gradient(inputs)) return operation.forward();
  return Recorded::apply(at::TensorList(inputs), saved, operation);
}

at::Tensor recomputed(const at::Tensor& input,
                      std::function<at::Tensor(const at::Tensor&)> compute) {
  if (!c10::GradMode::is_enabled()) return compute(input);
  // Autograd calls the backward pass of a node one of whose inputs needs gradients; here that may
  // be the parameters alone.
  const at::Tensor anchor = at::empty({0}, input.options()).requires_grad_(true);
  auto shared = std::make_shared<std::function<at::Tensor(const at::Tensor&)>>(std::move(compute));
  return with_gradient(
      {input, anchor}, {input},
      {.forward = [&input, shared] { return (*shared)(input.detach()); },
       .backward =
           [shared](const GradientCall& call) {
             const c10::AutoGradMode record(true);
             const bool wanted = call.wanted(0);
             const at::Tensor again = call.saved.front().detach().requires_grad_(wanted);
             const at::Tensor output = (*shared)(again);
             if (output.requires_grad()) output.backward(call.output_gradient);
             return std::vector<at::Tensor>{wanted ? again.grad() : at::Tensor(), at::Tensor()};
           }});
}

}  // namespace onset
