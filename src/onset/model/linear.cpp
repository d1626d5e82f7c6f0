#include "onset/model/linear.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <stdexcept>
#include <utility>

#include "onset/kernels/gradient.h"
#include "onset/kernels/low_rank.h"
#include "onset/kernels/own_kernels.h"
#include "onset/kernels/plain_product.h"
#include "onset/kernels/product_gradients.h"

namespace onset {
namespace {

// Which numbers of x stay, as bytes: drawn on the CPU, the same on every device.
at::Tensor kept_numbers(const at::Tensor& x, const LowRankAdapter& adapter) {
  // One generator a layer: its mask does not depend on which layers ran before.
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  const at::Generator generator =
      at::detail::createCPUGenerator(adapter.dropping->seed ^ (adapter.stream + 1) * golden);
  const at::Tensor mask = at::empty_like(x, x.options().device(at::kCPU).dtype(at::kBool));
  return mask.bernoulli_(1.0 - adapter.dropout, generator).to(x.device());
}

// x with the others set to 0 and those made larger by as much.
at::Tensor dropped(const at::Tensor& x, const at::Tensor& kept, double dropout) {
  return x.mul(kept).mul_(1.0 / (1.0 - dropout));
}

bool drops(const LowRankAdapter& adapter) {
  return adapter.dropout > 0 && adapter.dropping && adapter.dropping->training;
}

// By libtorch's own operations, for any type and device.
at::Tensor low_rank_product(const at::Tensor& x, const LowRankAdapter& adapter) {
  return at::linear(at::linear(x, adapter.down), adapter.up).mul(adapter.scale);
}

bool suits_low_rank_kernels(const LowRankAdapter& adapter) {
  const auto suits = [](const at::Tensor& t) {
    return t.scalar_type() == at::kFloat && suits_own_kernels(t);
  };
  return suits(adapter.down) && suits(adapter.up);
}

// What an adapter's backward pass needs beside its tensors.
struct LowRankStep {
  at::Tensor hidden;  // x A^T, filled by the forward pass
  double scale = 1.0;
  at::Tensor kept;  // of x, by dropout; undefined: all
  double dropout = 0.0;
};

// What the adapter adds to the rows of the weight that `up` [n, r] belongs to: [n, in].
at::Tensor change_of(const LowRankAdapter& adapter, const at::Tensor& up) {
  return at::mm(up.detach(), adapter.down.detach()).mul(adapter.scale);
}

ProductType product_type(Compute compute) {
  return compute == Compute::bf16 ? ProductType::bf16 : ProductType::f32;
}

// Features of each head from pairs (i, i + K/2) side by side to the two halves one after the other.
at::Tensor unpermute_features(const at::Tensor& features, std::int64_t head_dim) {
  const std::int64_t n = features.size(0);
  return features.view({n, -1, head_dim / 2, 2}).transpose(2, 3).reshape({n, -1});
}

// And back.
at::Tensor permute_features(const at::Tensor& features, std::int64_t head_dim) {
  const std::int64_t n = features.size(0);
  return features.reshape({n, -1, 2, head_dim / 2}).transpose(2, 3).reshape({n, -1});
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
  const bool unlike_stored = compute_ == Compute::f64 || device_ != at::kCPU;
  if (unlike_stored && parameter_.defined()) return parameter_;
  at::ScalarType type = at::kFloat;
  if (compute_ == Compute::f64) type = at::kDouble;
  if (compute_ == Compute::bf16) type = at::kBFloat16;
  const at::Tensor view = view_as_tensor(stored_, type);
  return (view.defined() ? view : expand(stored_, type)).to(device_);
}

at::Tensor Linear::product(const at::Tensor& x, const LowRankAddend& addend) const {
  if (!suits_own_kernels(x)) {
    return added_to(plain_product(x, converted(), product_type(compute_)), addend);
  }
  switch (compute_) {
    case Compute::f64:
      return at::linear(x, converted());
    case Compute::bf16:
      if (multiplies_bf16_as_stored(x.size(0), stored_) ||
          (!resident_.defined() && rounds_by_panels(stored_))) {
        return multiply_bf16(x, stored_, addend);
      }
      if (cpu_has_bf16_products()) return multiply_bf16(x, converted(), addend);
      // Same roundings of the inputs, products in float32.
      return added_to(at::linear(x.to(at::kBFloat16).to(at::kFloat), converted().to(at::kFloat)),
                      addend);
    case Compute::f32:
      break;
  }
  return multiply(x, stored_, addend);
}

at::Tensor Linear::ordered(const at::Tensor& out) const {
  return permuted_head_dim_ > 0 ? unpermute_features(out, permuted_head_dim_) : out;
}

at::Tensor Linear::adapted_product(const at::Tensor& x, const at::Tensor& adapted,
                                   at::Tensor* hidden) const {
  if (!adapted.defined()) return ordered(product(x));
  const at::Tensor h = to_low_rank(adapted, adapter_->down.detach());
  if (hidden != nullptr) *hidden = h;
  if (permuted_head_dim_ == 0) {
    return product(x,
                   {.left = h.mul(adapter_->scale), .right = adapter_->up.detach().contiguous()});
  }
  at::Tensor out = ordered(product(x));
  add_from_low_rank(h, adapter_->up.detach(), adapter_->scale, out);
  return out;
}

at::Tensor Linear::recorded_product(const LinearInput& given, const at::Tensor& kept) const {
  const ProductType type = product_type(compute_);
  const bool trained = records_gradient(parameter_);
  const at::Tensor& x = given.x();
  // The inputs: x, then what there is of the weight, and of the adapter's two.
  std::vector<at::Tensor> inputs{x};
  std::vector<at::Tensor> saved(2);  // A and B, then what x is made of
  if (trained) inputs.push_back(parameter_);
  std::shared_ptr<LowRankStep> step;
  at::Tensor adapted;
  if (adapter_ && suits_low_rank_kernels(*adapter_)) {
    step = std::make_shared<LowRankStep>(LowRankStep{
        .hidden = {}, .scale = adapter_->scale, .kept = kept, .dropout = adapter_->dropout});
    adapted = kept.defined() ? dropped(x.detach(), kept, adapter_->dropout) : x;
    inputs.insert(inputs.end(), {adapter_->down, adapter_->up});
    saved = {adapter_->down, adapter_->up};
  }
  KeptInput again;
  if (trained || step) again = given.kept(/*rounded=*/!step && type == ProductType::bf16);
  saved.insert(saved.end(), again.tensors.begin(), again.tensors.end());
  return with_gradient(
      inputs, saved,
      {.forward = [&] { return adapted_product(x, adapted, step ? &step->hidden : nullptr); },
       .backward =
           [weight = multiplied(), alive = resident_, permuted = permuted_head_dim_, type, trained,
            step, restored = std::move(again.restored)](const GradientCall& call) {
             const at::Tensor dy = call.output_gradient.contiguous();
             const at::Tensor stored_dy = permuted > 0 ? permute_features(dy, permuted) : dy;
             std::vector<at::Tensor> gradients(1);
             const at::Tensor dh =
                 step ? low_rank_gradient(dy, call.saved[1], step->scale) : at::Tensor();
             if (call.wanted(0)) {
               LowRankShare share;
               const bool drops = step && step->kept.defined();
               if (step && !drops) share = {.dh = dh, .down = call.saved[0].contiguous()};
               gradients[0] = input_gradient(stored_dy, weight, type, share);
               if (drops) {
                 const at::Tensor own = at::zeros_like(gradients[0]);
                 add_input_gradient(dh, call.saved[0], own);
                 gradients[0].add_(dropped(own, step->kept, step->dropout));
               }
             }
             const std::size_t first = trained ? 2 : 1;  // of A's
             const bool wants_down = step && call.wanted(first);
             const at::Tensor input =
                 trained || wants_down ? restored(call.saved.subspan(2)) : at::Tensor();
             if (trained) gradients.push_back(weight_gradient(stored_dy, input, type));
             if (!step) return gradients;
             gradients.resize(first + 2);
             if (wants_down) {
               gradients[first] = narrow_weight_gradient(
                   dh, step->kept.defined() ? dropped(input, step->kept, step->dropout) : input);
             }
             if (call.wanted(first + 1)) {
               gradients[first + 1] = narrow_weight_gradient(step->hidden.mul(step->scale), dy).t();
             }
             return gradients;
           }});
}

at::Tensor Linear::recorded_plain_product(const at::Tensor& x) const {
  const bool trained = records_gradient(parameter_);
  std::vector<at::Tensor> inputs{x};
  if (trained) inputs.push_back(parameter_);
  return ordered(with_gradient(inputs, {trained ? x : at::Tensor()},
                               {.forward = [&] { return product(x); },
                                .backward =
                                    [weight = converted().detach(), type = product_type(compute_),
                                     trained](const GradientCall& call) {
                                      const at::Tensor& dy = call.output_gradient;
                                      std::vector<at::Tensor> gradients(1);
                                      if (call.wanted(0))
                                        gradients[0] = plain_product(dy, weight.t(), type);
                                      if (trained) {
                                        gradients.push_back(
                                            plain_product(dy.t(), call.saved.front().t(), type));
                                      }
                                      return gradients;
                                    }}));
}

at::Tensor Linear::operator()(const LinearInput& input) const {
  const at::Tensor& x = input.x();
  const bool by_kernels = adapter_ && compute_ != Compute::f64 && suits_low_rank_kernels(*adapter_);
  const at::Tensor kept = adapter_ && drops(*adapter_) ? kept_numbers(x, *adapter_) : at::Tensor();
  const auto adapted = [&] { return kept.defined() ? dropped(x, kept, adapter_->dropout) : x; };
  const bool records = compute_ != Compute::f64 && (records_gradient(x) || trains());
  at::Tensor out;
  if (!records) {
    out = adapted_product(x, by_kernels ? adapted() : at::Tensor(), nullptr);
  } else {
    out = suits_own_kernels(x) ? recorded_product(input, kept) : recorded_plain_product(x);
  }
  if (bias_.defined()) out = out.add(ordered_bias());
  return adapter_ && !by_kernels ? out.add(low_rank_product(adapted(), *adapter_)) : out;
}

at::Tensor Linear::ordered_bias() const {
  if (permuted_head_dim_ == 0) return bias_;
  return unpermute_features(bias_.unsqueeze(0), permuted_head_dim_).squeeze(0);
}

void Linear::set_parameter(at::Tensor weight) {
  if (weight.size(0) != stored_.rows || weight.size(1) != stored_.columns) {
    throw std::logic_error("Linear::set_parameter: a weight of another shape");
  }
  parameter_ = std::move(weight);
  permuted_head_dim_ = 0;
  resident_ = at::Tensor();
  // float64 is for tests; stored() then, and on another device, keeps what the checkpoint holds.
  if (compute_ != Compute::f64 && suits_own_kernels(parameter_)) stored_ = stored_view(parameter_);
  refresh();
}

void Linear::keep_converted(bool keeps) {
  keeps_converted_ = keeps;
  refresh();
}

void Linear::refresh() {
  if (!parameter_.defined() || compute_ != Compute::bf16) return;
  if (!keeps_converted_ && suits_own_kernels(parameter_) && rounds_by_panels(stored_)) {
    resident_ = at::Tensor();
    return;
  }
  if (!resident_.defined()) resident_ = at::empty_like(parameter_, at::kBFloat16);
  resident_.copy_(parameter_.detach());
}

StoredMatrix Linear::multiplied() const {
  const bool kept = resident_.defined() && compute_ == Compute::bf16 && device_ == at::kCPU;
  return kept ? stored_view(resident_) : stored_;
}

Linear Linear::outputs(std::int64_t first, std::int64_t count) const {
  if (permuted_head_dim_ != 0 || bias_.defined()) {
    throw std::logic_error("Linear::outputs: of a layer with a bias or permuted rows");
  }
  Linear part(stored_.slice(first, count), {}, compute_);
  part.device_ = device_;
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
  if (compute_ != Compute::f32 || device_ != at::kCPU) resident_ = converted();
}

void Linear::place(at::Device device) {
  device_ = device;
  if (bias_.defined()) bias_ = bias_.to(device);
}

at::Tensor Linear::dense(at::ScalarType type) const {
  at::Tensor weight =
      parameter_.defined() ? parameter_.detach().to(at::kCPU, type) : expand(stored_, type);
  if (permuted_head_dim_ != 0) {
    weight = unpermute_features(weight.t().contiguous(), permuted_head_dim_).t().contiguous();
  }
  return adapter_ ? weight.add(change_of(*adapter_, adapter_->up).to(at::kCPU, type)) : weight;
}

at::Tensor Linear::dense_bias() const {
  return bias_.defined() ? ordered_bias().detach().cpu() : bias_;
}

at::Tensor Linear::dense_row(std::int64_t row, at::ScalarType type) const {
  if (permuted_head_dim_ != 0) throw std::logic_error("Linear::dense_row: of permuted rows");
  const at::Tensor weight = parameter_.defined()
                                ? parameter_.detach().select(0, row).to(at::kCPU, type)
                                : expand(stored_.slice(row, 1), type).view(-1);
  if (!adapter_) return weight;
  return weight.add(
      change_of(*adapter_, adapter_->up.narrow(0, row, 1)).view(-1).to(at::kCPU, type));
}

bool Linear::trains() const {
  return records_gradient(parameter_) ||
         (adapter_ && (records_gradient(adapter_->down) || records_gradient(adapter_->up)));
}

}  // namespace onset
