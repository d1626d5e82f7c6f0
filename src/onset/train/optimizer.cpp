#include "onset/train/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <set>
#include <utility>

#include "onset/base/error.h"

namespace onset {
namespace {

void check(const std::vector<Parameter>& parameters) {
  std::set<std::string> names;
  for (const Parameter& parameter : parameters) {
    if (!names.insert(parameter.name).second) {
      throw usage_error(str_cat("tensor ", parameter.name, " would be trained twice"));
    }
    if (!parameter.value.requires_grad() || !parameter.value.is_leaf()) {
      throw usage_error(str_cat("tensor ", parameter.name, " takes no gradient"));
    }
  }
}

}  // namespace

AdamW::AdamW(std::vector<Parameter> parameters, const AdamWOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  check(options_);
  check(parameters_);
  const c10::NoGradGuard no_grad;
  for (const Parameter& parameter : parameters_) {
    const auto like = parameter.value.detach();
    moments_.push_back({.steps = at::zeros({}, like.options().dtype(at::kFloat)),
                        .first = at::zeros_like(like),
                        .second = at::zeros_like(like)});
  }
}

void AdamW::step(double learning_rate) {
  const c10::NoGradGuard no_grad;
  step_group(/*decaying=*/true, learning_rate);
  step_group(/*decaying=*/false, learning_rate);
}

void AdamW::step_group(bool decaying, double learning_rate) {
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> first;
  std::vector<at::Tensor> second;
  std::vector<at::Tensor> steps;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& value = parameters_[i].value;
    const bool decays = options_.decays == WeightDecay::all || value.dim() > 1;
    if (decays != decaying || !value.grad().defined()) continue;
    values.push_back(value.detach());
    // The kernel reads all of its tensors in the order that they lie in memory.
    gradients.push_back(value.grad().detach().contiguous());
    first.push_back(moments_[i].first);
    second.push_back(moments_[i].second);
    moments_[i].steps.add_(1);
    steps.push_back(moments_[i].steps);
  }
  if (values.empty()) return;
  at::_fused_adamw_(values, gradients, first, second, /*max_exp_avg_sqs=*/{}, steps, learning_rate,
                    options_.beta1, options_.beta2, decaying ? options_.weight_decay : 0.0,
                    options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace onset
