#include "onset/model/linear.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>
#include <utility>

#include "onset/kernels/gradient.h"
#include "onset/kernels/product_gradients.h"

namespace onset {
namespace {

// x with a share of its numbers set to 0 and the others made larger by as much.
at::Tensor dropped(const at::Tensor& x, const LowRankAdapter& adapter) {
  // One generator a layer: its mask does not depend on which layers ran before.
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  const at::Generator generator =
      at::detail::createCPUGenerator(adapter.dropping->seed ^ (adapter.stream + 1) * golden);
  const double kept = 1.0 - adapter.dropout;
  return x.mul(at::empty_like(x).bernoulli_(kept, generator).div_(kept));
}

at::Tensor low_rank_product(const at::Tensor& x, const LowRankAdapter& adapter) {
  const bool drops = adapter.dropout > 0 && adapter.dropping && adapter.dropping->training;
  const at::Tensor input = drops ? dropped(x, adapter) : x;
  return at::linear(at::linear(input, adapter.down), adapter.up).mul(adapter.scale);
}

// What the adapter adds to the rows of the weight that `up` [n, r] belongs to: [n, in].
at::Tensor change_of(const LowRankAdapter& adapter, const at::Tensor& up) {
  return at::mm(up.detach(), adapter.down.detach()).mul(adapter.scale);
}

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
  if (compute_ == Compute::f64 && parameter_.defined()) return parameter_;
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

at::Tensor Linear::recorded_product(const at::Tensor& x) const {
  if (compute_ == Compute::f64) return at::linear(x, converted());
  const ProductType type = compute_ == Compute::bf16 ? ProductType::bf16 : ProductType::f32;
  const bool trained = records_gradient(parameter_);
  std::vector<at::Tensor> inputs{x};
  if (trained) inputs.push_back(parameter_);
  return with_gradient(
      inputs, trained ? std::vector<at::Tensor>{x} : std::vector<at::Tensor>{},
      {.forward = [&] { return product(x); },
       .backward =
           [weight = multiplied(), kept = resident_, type, trained](const GradientCall& call) {
             const at::Tensor& dy = call.output_gradient;
             std::vector<at::Tensor> gradients(1);
             if (call.wanted(0)) gradients[0] = input_gradient(dy, weight, type);
             if (trained) gradients.push_back(weight_gradient(dy, call.saved.front(), type));
             return gradients;
           }});
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  const bool records = records_gradient(x) || records_gradient(parameter_);
  at::Tensor out = records ? recorded_product(x) : product(x);
  if (bias_.defined()) out = out.add(bias_);
  if (permuted_head_dim_ > 0) out = unpermute_features(out, permuted_head_dim_);
  return adapter_ ? out.add(low_rank_product(x, *adapter_)) : out;
}

void Linear::set_parameter(at::Tensor weight) {
  if (weight.size(0) != stored_.rows || weight.size(1) != stored_.columns) {
    throw std::logic_error("Linear::set_parameter: a weight of another shape");
  }
  parameter_ = std::move(weight);
  permuted_head_dim_ = 0;
  resident_ = at::Tensor();
  // float64 is for tests; stored() then keeps what the checkpoint holds.
  if (compute_ != Compute::f64) stored_ = stored_view(parameter_);
  refresh();
}

void Linear::refresh() {
  if (!parameter_.defined() || compute_ != Compute::bf16) return;
  if (!resident_.defined()) resident_ = at::empty_like(parameter_, at::kBFloat16);
  resident_.copy_(parameter_.detach());
}

StoredMatrix Linear::multiplied() const {
  return resident_.defined() && compute_ == Compute::bf16 ? stored_view(resident_) : stored_;
}

Linear Linear::outputs(std::int64_t first, std::int64_t count) const {
  if (permuted_head_dim_ != 0 || bias_.defined()) {
    throw std::logic_error("Linear::outputs: of a layer with a bias or permuted rows");
  }
  Linear part(stored_.slice(first, count), {}, compute_);
  if (resident_.defined()) part.resident_ = resident_.narrow(0, first, count);
  if (parameter_.defined()) part.parameter_ = parameter_.narrow(0, first, count);
  if (adapter_) {
    auto adapter = std::make_shared<LowRankAdapter>(*adapter_);
    adapter->up = adapter->up.narrow(0, first, count);
    part.adapter_ = std::move(adapter);
  }
  return part;
}

void Linear::make_resident() {
  if (compute_ != Compute::f32) resident_ = converted();
}

at::Tensor Linear::dense(at::ScalarType type) const {
  at::Tensor weight = parameter_.defined() ? parameter_.detach().to(type) : expand(stored_, type);
  if (permuted_head_dim_ != 0) {
    weight = unpermute_features(weight.t().contiguous(), permuted_head_dim_).t().contiguous();
  }
  return adapter_ ? weight.add(change_of(*adapter_, adapter_->up).to(type)) : weight;
}

at::Tensor Linear::dense_bias() const {
  if (!bias_.defined() || permuted_head_dim_ == 0) return bias_.defined() ? bias_.detach() : bias_;
  return unpermute_features(bias_.detach().unsqueeze(0), permuted_head_dim_).squeeze(0);
}

at::Tensor Linear::dense_row(std::int64_t row, at::ScalarType type) const {
  if (permuted_head_dim_ != 0) throw std::logic_error("Linear::dense_row: of permuted rows");
  const at::Tensor weight = parameter_.defined() ? parameter_.detach().select(0, row).to(type)
                                                 : expand(stored_.slice(row, 1), type).view(-1);
  if (!adapter_) return weight;
  return weight.add(change_of(*adapter_, adapter_->up.narrow(0, row, 1)).view(-1).to(type));
}

bool Linear::trains() const {
  return records_gradient(parameter_) ||
         (adapter_ && (records_gradient(adapter_->down) || records_gradient(adapter_->up)));
}

}  // namespace onset
