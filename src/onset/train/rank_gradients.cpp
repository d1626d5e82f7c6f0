#include "onset/train/rank_gradients.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"

namespace onset {
namespace {

// Numbers summed by one call.
constexpr std::int64_t bucket_numbers = std::int64_t{4} << 20;

// A tensor on the CPU.
void add_one(at::Tensor& gradient, const Ranks& ranks) {
  const auto count = static_cast<std::size_t>(gradient.numel());
  if (gradient.scalar_type() == at::kDouble) {
    ranks.add(std::span(gradient.mutable_data_ptr<double>(), count));
  } else {
    ranks.add(std::span(gradient.mutable_data_ptr<float>(), count));
  }
}

// Several in one piece of memory.
void add_bucket(std::vector<at::Tensor>& gradients, const Ranks& ranks) {
  if (gradients.empty()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& gradient : gradients) flat.push_back(gradient.reshape({-1}));
  at::Tensor joined = at::cat(flat).cpu();
  add_one(joined, ranks);
  std::int64_t first = 0;
  for (at::Tensor& gradient : gradients) {
    gradient.copy_(joined.narrow(0, first, gradient.numel()).view(gradient.sizes()));
    first += gradient.numel();
  }
  gradients.clear();
}

}  // namespace

void add_gradients(std::span<const Parameter> parameters, const Ranks& ranks) {
  if (ranks.count() == 1) return;
  std::vector<double> having;
  for (const Parameter& parameter : parameters) {
    having.push_back(parameter.value.grad().defined() ? 1 : 0);
  }
  ranks.add(having);
  std::vector<at::Tensor> bucket;
  std::int64_t numbers = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (having[i] == 0) continue;
    const at::Tensor& value = parameters[i].value;
    at::Tensor& gradient = value.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(value.detach());
    gradient = gradient.detach().contiguous();
    const bool fits = bucket.empty() || (bucket.front().scalar_type() == gradient.scalar_type() &&
                                         numbers + gradient.numel() <= bucket_numbers);
    if (!fits) {
      add_bucket(bucket, ranks);
      numbers = 0;
    }
    bucket.push_back(gradient);
    numbers += gradient.numel();
  }
  add_bucket(bucket, ranks);
}

void check_same_weights(std::span<const Parameter> parameters, const Ranks& ranks) {
  if (ranks.count() == 1) return;
  ContentHash hash;
  for (const Parameter& parameter : parameters) {
    const at::Tensor value = parameter.value.detach().cpu().contiguous();
    hash.add(parameter.name);
    hash.add(std::span(static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()));
  }
  const auto other = ranks.first_that_differs(hash.hex());
  require_input(!other, "rank ", other.value_or(0),
                " holds other weights than rank 0: the machines compute differently, or one of "
                "them began with another model");
}

}  // namespace onset
