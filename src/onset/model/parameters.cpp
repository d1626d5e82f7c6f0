#include "onset/model/parameters.h"

#include <ATen/ATen.h>

#include "onset/base/error.h"
#include "onset/kernels/own_kernels.h"
#include "onset/kernels/product_gradients.h"
#include "onset/model/decoder_pass.h"

namespace onset {
namespace {

std::string parameter_name(const Linear& linear) {
  const TensorOrigin& origin = linear.origin();
  std::string name = origin.name;
  // The name of a stack of experts is a tensor's whole name already.
  if (origin.expert < 0) name += ".weight";
  if (origin.expert >= 0) name += str_cat("[", origin.expert, "]");
  if (origin.all_rows > 0) {
    name += str_cat("[", origin.first_row, ":", origin.first_row + linear.out_features(), "]");
  }
  return name;
}

// The up-projection of latents as one layer, where the file holds its halves apart.
void join_halves(LatentWeights& latent, std::int64_t heads, Compute compute, at::Device device,
                 const std::string& name) {
  latent.resident_up = at::Tensor();
  if (latent.key_up.empty()) return;
  const at::Tensor joined = latent.dense_up(heads, at::kFloat).flatten(0, 1).contiguous();
  latent.key_value_up = Linear(stored_view(joined), {}, compute);
  latent.key_value_up.set_origin({.name = name});
  latent.key_value_up.place(device);
  latent.key_value_up.set_parameter(joined.to(device, residual_type(compute)));
  latent.key_up.clear();
  latent.value_up.clear();
}

}  // namespace

Parameters::Parameters(Decoder& decoder, bool converted)
    : decoder_(decoder), converted_(converted) {
  ModelWeights& weights = decoder.weights_to_change();
  const at::ScalarType type = residual_type(decoder.compute());
  at::Tensor embedding =
      expand(weights.embedding, at::kFloat).to(decoder.device(), type).requires_grad_(true);
  const bool gguf = weights.gguf;
  all_.push_back({gguf ? "token_embd.weight" : weights.prefix + "embed_tokens.weight", embedding});
  weights.embedding_parameter = embedding;
  if (type == at::kFloat && suits_own_kernels(embedding)) {
    weights.embedding = stored_view(embedding);
  }
  for (std::int64_t layer = 0; layer < decoder.config().layer_count(); ++layer) add_layer(layer);
  add_gain(gguf ? "output_norm.weight" : weights.prefix + "norm.weight", weights.final_norm);
  if (weights.tied) {
    weights.head.keep_converted(converted_);
    weights.head.set_parameter(embedding);
    linears_.push_back(&weights.head);
  } else {
    add_linear(weights.head);
  }
  decoder.release_pages();
  refresh();
}

void Parameters::add_linear(Linear& linear) {
  const at::Tensor stored_bias = linear.dense_bias();
  const at::Tensor weight = linear.dense(at::kFloat)
                                .to(decoder_.device(), residual_type(decoder_.compute()))
                                .contiguous();
  linear.keep_converted(converted_);
  linear.set_parameter(at::Tensor(weight).requires_grad_(true));
  linears_.push_back(&linear);
  all_.push_back({parameter_name(linear), linear.parameter()});
  if (!stored_bias.defined()) return;
  const at::Tensor bias = stored_bias
                              .to(decoder_.device(), stored_bias.scalar_type(),
                                  /*non_blocking=*/false, /*copy=*/true)
                              .requires_grad_(true);
  linear.set_bias(bias);
  const TensorOrigin& origin = linear.origin();
  all_.push_back({str_cat(origin.name, ".bias",
                          origin.all_rows > 0 ? str_cat("[", origin.first_row, ":]") : ""),
                  bias});
}

void Parameters::add_gain(const std::string& name, at::Tensor& gain) {
  if (!gain.defined()) return;
  const bool shifted = decoder_.config().norm_plus_one;
  const at::Tensor stored =
      (shifted ? gain.detach().sub(1.0) : gain.detach().clone()).requires_grad_(true);
  all_.push_back({name, stored});
  if (shifted) {
    shifted_.push_back({.effective = &gain, .stored = stored});
  } else {
    gain = stored;
  }
}

void Parameters::add_layer(std::int64_t index) {
  ModelWeights& weights = decoder_.weights_to_change();
  LayerWeights& layer = weights.layers[static_cast<std::size_t>(index)];
  for (const NamedGain& gain : gains_of(layer, decoder_.config(), weights, index)) {
    add_gain(gain.name, *gain.gain);
  }
  if (layer.attention.latent) {
    join_halves(*layer.attention.latent, decoder_.config().heads, decoder_.compute(),
                decoder_.device(), str_cat("blk.", index, ".attn_kv_b"));
  }
  for_each_linear(layer, [&](Linear& linear) { add_linear(linear); });
}

at::Tensor Parameters::stored_gain(const at::Tensor& gain) const {
  for (const ShiftedGain& shifted : shifted_) {
    if (shifted.effective == &gain) return shifted.stored;
  }
  return {};
}

void Parameters::refresh() {
  for (const ShiftedGain& gain : shifted_) *gain.effective = gain.stored.add(1.0);
  for (Linear* linear : linears_) linear->refresh();
}

}  // namespace onset
