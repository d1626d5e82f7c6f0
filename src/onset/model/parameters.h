// A model's weights as tensors that are trained.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "onset/model/decoder.h"
#include "onset/model/parameter.h"

namespace onset {

// Every weight of a model but the correction biases of routers, which no gradient reaches. The
// decoder's layers work on these tensors from then on; a tied head and embedding are one.
class Parameters {
 public:
  // Copies all weights, 4 bytes each (8 in f64), and lets go of the checkpoint's pages. The decoder
  // must outlive the object; a model whose layers have been given adapters keeps them. Not in
  // InferenceMode. `converted`: Linear::keep_converted for all layers.
  explicit Parameters(Decoder& decoder, bool converted = true);

  // Each of the residual type, as the file stores the weight (gains too), and named as the
  // checkpoint's tensor; of one that several layers share (fused projections, stacks of experts)
  // with the part: "model.layers.0.self_attn.qkv_proj.weight[64:96]",
  // "model.layers.1.mlp.experts.down_proj[3]".
  [[nodiscard]] const std::vector<Parameter>& all() const { return all_; }
  // The trained tensor behind a gain that files store as w - 1; undefined for another gain.
  [[nodiscard]] at::Tensor stored_gain(const at::Tensor& gain) const;
  // Before each recorded pass and after each change of the tensors: gains that are stored as w - 1
  // and weights kept as bfloat16 are made anew.
  void refresh();

 private:
  void add_linear(Linear& linear);
  void add_gain(const std::string& name, at::Tensor& gain);
  void add_layer(std::int64_t layer);

  struct ShiftedGain {
    at::Tensor* effective;
    at::Tensor stored;
  };

  Decoder& decoder_;
  std::vector<Parameter> all_;
  std::vector<ShiftedGain> shifted_;
  std::vector<Linear*> linears_;
  bool converted_;
};

}  // namespace onset
