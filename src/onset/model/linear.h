// One linear layer of a model, whatever its weights are stored as and products are computed in.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "onset/kernels/stored_matrix.h"
#include "onset/model/model.h"

namespace onset {

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
  [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
  // Converts the weight once and keeps it, where the computation needs it converted.
  void make_resident();

  // Outputs [first, first + count) as a layer of their own. Throws std::logic_error where the rows
  // are permuted or there is a bias.
  [[nodiscard]] Linear outputs(std::int64_t first, std::int64_t count) const;

  [[nodiscard]] std::int64_t out_features() const { return stored_.rows; }
  [[nodiscard]] std::int64_t in_features() const { return stored_.columns; }
  [[nodiscard]] const StoredMatrix& stored() const { return stored_; }
  [[nodiscard]] const at::Tensor& bias() const { return bias_; }
  // The whole weight as a tensor [out, in] in the usual row order.
  [[nodiscard]] at::Tensor dense(at::ScalarType type) const;

 private:
  [[nodiscard]] at::Tensor product(const at::Tensor& x) const;
  [[nodiscard]] at::Tensor converted() const;

  StoredMatrix stored_;
  at::Tensor bias_;
  Compute compute_ = Compute::f32;
  std::int64_t permuted_head_dim_ = 0;
  at::Tensor resident_;
};

}  // namespace onset
