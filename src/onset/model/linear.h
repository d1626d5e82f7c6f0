// One linear layer of a model, whatever its weights are stored as and products are computed in.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "onset/kernels/stored_matrix.h"
#include "onset/model/linear_input.h"
#include "onset/model/model.h"

namespace onset {

// Which tensor of the checkpoint a linear layer was read from.
struct TensorOrigin {
  std::string name;            // without ".weight"; of a stack of experts the whole name
  std::int64_t first_row = 0;  // of a matrix that several layers share (fused projections)
  std::int64_t all_rows = 0;   // of that matrix; 0: as many as the layer has
  std::int64_t expert = -1;    // of a stack [E, rows, columns]
};

// What a dropout mask is drawn from: the same numbers give the same mask, also where a block is
// computed again. One object for all adapters of a model; a trainer sets it for each micro-batch.
struct DropoutState {
  std::uint64_t seed = 0;
  bool training = false;  // else nothing is dropped
};

// A low-rank change of a weight (LoRA, 2106.09685, section 4.1): y += scale * (x A^T) B^T.
struct LowRankAdapter {
  at::Tensor down;  // A [r, in]
  at::Tensor up;    // B [out, r]; r may be shared with other layers of a fused matrix
  double scale = 1.0;
  double dropout = 0.0;      // of x, where `dropping` says so
  std::uint64_t stream = 0;  // tells the masks of the layers apart
  std::shared_ptr<const DropoutState> dropping = nullptr;
};

class Linear {
 public:
  Linear() = default;
  // `stored` [out, in] is a view into the checkpoint, which must outlive this. `bias` [out] may be
  // undefined. `permuted_head_dim`: not 0 when the rows of each head of that many dims are stored
  // in GGUF's order for llama-type Q and K (dim i of the first half and of the second half side by
  // side); the output has the usual order.
  Linear(const StoredMatrix& stored, at::Tensor bias, Compute compute,
         std::int64_t permuted_head_dim = 0);

  // x [N, in] to [N, out], both in the type of the residual stream (float64 in f64, else float32).
  // Differentiable by x, by the parameters and by the adapter; the products of both passes go by
  // the same kernels, so that a pass that is recorded gives what one that is not gives.
  [[nodiscard]] at::Tensor operator()(const LinearInput& input) const;
  // Converts the weight once and keeps it, where the computation needs it converted.
  void make_resident();
  // From now on products are made on that device, of x that lies there.
  void place(at::Device device);

  // Outputs [first, first + count) as a layer of their own. Throws std::logic_error where the rows
  // are permuted or there is a bias.
  [[nodiscard]] Linear outputs(std::int64_t first, std::int64_t count) const;

  // From now on the layer's weight is this tensor [out, in] of the residual type on the layer's
  // device, in the usual row order; on the CPU stored() is a view of it. Not in InferenceMode.
  void set_parameter(at::Tensor weight);
  void set_bias(at::Tensor bias) { bias_ = std::move(bias); }
  // Whether a parameter is kept as bfloat16 too, where products are made of that: the fastest for
  // the few rows at a time that sampling multiplies. Without it the weight is rounded in each
  // product, but for a CPU or a shape whose products need it whole. True unless set.
  void keep_converted(bool keeps);
  // To be called after a parameter was written to: makes what is kept converted anew.
  void refresh();
  void set_adapter(std::shared_ptr<const LowRankAdapter> adapter) { adapter_ = std::move(adapter); }
  [[nodiscard]] const std::shared_ptr<const LowRankAdapter>& adapter() const { return adapter_; }
  [[nodiscard]] const at::Tensor& parameter() const { return parameter_; }
  [[nodiscard]] const TensorOrigin& origin() const { return origin_; }
  void set_origin(TensorOrigin origin) { origin_ = std::move(origin); }

  [[nodiscard]] std::int64_t out_features() const { return stored_.rows; }
  [[nodiscard]] std::int64_t in_features() const { return stored_.columns; }
  [[nodiscard]] const StoredMatrix& stored() const { return stored_; }
  // The weight as products read it: where it is kept as bfloat16, that. A view of this layer.
  [[nodiscard]] StoredMatrix multiplied() const;
  [[nodiscard]] const at::Tensor& bias() const { return bias_; }
  // The whole weight with its adapter as a tensor [out, in] in the usual row order. Like the other
  // two below a copy on the CPU, wherever the layer is.
  [[nodiscard]] at::Tensor dense(at::ScalarType type) const;
  // The bias in the usual row order; undefined without one.
  [[nodiscard]] at::Tensor dense_bias() const;
  // One row [in] of it. Throws std::logic_error where the rows are permuted.
  [[nodiscard]] at::Tensor dense_row(std::int64_t row, at::ScalarType type) const;
  // Whether gradients of the weight or the adapter would be recorded now.
  [[nodiscard]] bool trains() const;

 private:
  [[nodiscard]] at::Tensor product(const at::Tensor& x, const LowRankAddend& addend = {}) const;
  // The same with the outputs in the usual order, and with the adapter's change of `adapted`, x or
  // what dropout left of it; undefined: without.
  // `hidden`: where A `adapted` is left.
  [[nodiscard]] at::Tensor adapted_product(const at::Tensor& x, const at::Tensor& adapted,
                                           at::Tensor* hidden) const;
  // The same, recorded; `kept`: which numbers of x dropout leaves the adapter; undefined: all.
  [[nodiscard]] at::Tensor recorded_product(const LinearInput& input, const at::Tensor& kept) const;
  // The product in the usual order by libtorch's operations, recorded.
  [[nodiscard]] at::Tensor recorded_plain_product(const at::Tensor& x) const;
  [[nodiscard]] at::Tensor ordered(const at::Tensor& out) const;
  [[nodiscard]] at::Tensor ordered_bias() const;
  [[nodiscard]] at::Tensor converted() const;

  StoredMatrix stored_;
  at::Tensor bias_;
  Compute compute_ = Compute::f32;
  at::Device device_ = at::kCPU;
  std::int64_t permuted_head_dim_ = 0;
  at::Tensor resident_;
  bool keeps_converted_ = true;
  at::Tensor parameter_;  // undefined: the weight is what the checkpoint stores
  std::shared_ptr<const LowRankAdapter> adapter_;
  TensorOrigin origin_;
};

}  // namespace onset
