#include "onset/model/linear.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

namespace onset {
namespace {

// Features of each head from pairs (i, i + K/2) side by side to the two halves one after the other.
at::Tensor unpermute_features(const at::Tensor& features, std::int64_t head_dim) {
  const std::int64_t n = features.size(0);
  return features.view({n, -1, head_dim / 2, 2}).transpose(2, 3).reshape({n, -1});
}

}  // namespace

Linear::Linear(const StoredMatrix& stored, at::Tensor bias, Compute compute,
               std::int64_t permuted_head_dim)
    : stored_(stored),
      bias_(std::move(bias)),
      compute_(compute),
      permuted_head_dim_(permuted_head_dim) {}

at::Tensor Linear::converted() const {
  if (resident_.defined()) return resident_;
  const at::ScalarType type = compute_ == Compute::f64 ? at::kDouble : at::kBFloat16;
  at::Tensor view = view_as_tensor(stored_, type);
  return view.defined() ? view : expand(stored_, type);
}

at::Tensor Linear::product(const at::Tensor& x) const {
  switch (compute_) {
    case Compute::f64:
      return at::linear(x, converted());
    case Compute::bf16:
      if (multiplies_bf16_as_stored(x.size(0), stored_)) return multiply_bf16(x, stored_);
      if (cpu_has_bf16_products()) return multiply_bf16(x, converted());
      // Same roundings of the inputs, products in float32.
      return at::linear(x.to(at::kBFloat16).to(at::kFloat), converted().to(at::kFloat));
    case Compute::f32:
      break;
  }
  return multiply(x, stored_);
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  at::Tensor out = product(x);
  if (bias_.defined()) out = out.add(bias_);
  return permuted_head_dim_ > 0 ? unpermute_features(out, permuted_head_dim_) : out;
}

Linear Linear::outputs(std::int64_t first, std::int64_t count) const {
  if (permuted_head_dim_ != 0 || bias_.defined()) {
    throw std::logic_error("Linear::outputs: of a layer with a bias or permuted rows");
  }
  Linear part(stored_.slice(first, count), {}, compute_);
  if (resident_.defined()) part.resident_ = resident_.narrow(0, first, count);
  return part;
}

void Linear::make_resident() {
  if (compute_ != Compute::f32) resident_ = converted();
}

at::Tensor Linear::dense(at::ScalarType type) const {
  at::Tensor weight = expand(stored_, type);
  if (permuted_head_dim_ == 0) return weight;
  return unpermute_features(weight.t().contiguous(), permuted_head_dim_).t().contiguous();
}

}  // namespace onset
