// The weights of a decoder, found in a checkpoint under either format's names and checked.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/log.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"
#include "onset/model/linear.h"

namespace onset {

// Latent attention: both latents are normed, the rotated key part is not.
struct LatentWeights {
  Linear query_down;          // [query_rank, D]; empty where queries are made from the input
  at::Tensor query_norm;      // [query_rank]
  Linear key_value_down;      // [kv_rank + rope_dim, D]
  at::Tensor key_value_norm;  // [kv_rank]
  // Rows of each head: its key dims that are not turned, then its values. [H*(K - rope + V),
  // kv_rank]
  Linear key_value_up;
  // Where the file holds its two halves apart instead (newer GGUF), of each head: the keys'
  // transposed [kv_rank, K - rope], the values' [V, kv_rank].
  std::vector<StoredMatrix> key_up;
  std::vector<StoredMatrix> value_up;

  at::Tensor resident_up;  // dense_up() where the model is resident, else undefined

  // Latents [n, kv_rank] times key_value_up: [n, H * (K - rope + V)].
  [[nodiscard]] at::Tensor up(const at::Tensor& latents, std::int64_t heads) const;
  // key_value_up as a tensor [H, K - rope + V, kv_rank] on the CPU.
  [[nodiscard]] at::Tensor dense_up(std::int64_t heads, at::ScalarType type) const;
};

struct AttentionWeights {
  Linear q;           // [H*K, D], with a query latent [H*K, query_rank]
  Linear k;           // [G*K, D]
  Linear v;           // [G*K, D]
  Linear o;           // [D, H*V], V the value head size
  at::Tensor q_norm;  // [K] (per head) or [H*K] (whole), undefined without QK-norm
  at::Tensor k_norm;  // [K] or [G*K]
  std::optional<LatentWeights> latent;  // instead of k and v
};

// A dense FFN, an expert or a shared expert, each with its own inner size F.
struct FfnWeights {
  Linear gate;  // [F, D]
  Linear up;    // [F, D]
  Linear down;  // [D, F]
};

struct MixtureWeights {
  Linear router;               // [E, D]; in float32 at least, whatever the products are computed in
  at::Tensor correction_bias;  // [E], undefined without
  std::vector<FfnWeights> experts;
  std::optional<FfnWeights> shared;
  Linear shared_gate;  // [1, D], where the shared output has a gate
};

struct LayerWeights {
  // RMSNorm gains [D], as they multiply (1 is already added where the family stores w - 1);
  // undefined where the family has no such norm.
  at::Tensor attn_norm;       // before attention
  at::Tensor attn_post_norm;  // on attention's output
  AttentionWeights attention;
  at::Tensor ffn_norm;
  at::Tensor ffn_post_norm;
  FfnWeights ffn;                         // of a dense layer
  std::optional<MixtureWeights> mixture;  // of another
  // What streaming reads ahead and drops behind, but for the experts, which are read when chosen.
  std::vector<const TensorInfo*> tensors;
};

// Calls visit(linear) for every linear layer, those of the experts among them.
template <typename Visit>
void for_each_linear(LayerWeights& layer, const Visit& visit) {
  const auto visit_used = [&](Linear& linear) {
    if (linear.out_features() > 0) visit(linear);
  };
  const auto visit_ffn = [&](FfnWeights& ffn) {
    visit_used(ffn.gate);
    visit_used(ffn.up);
    visit_used(ffn.down);
  };
  for (Linear* linear :
       {&layer.attention.q, &layer.attention.k, &layer.attention.v, &layer.attention.o}) {
    visit_used(*linear);
  }
  if (layer.attention.latent) {
    LatentWeights& latent = *layer.attention.latent;
    for (Linear* linear : {&latent.query_down, &latent.key_value_down, &latent.key_value_up}) {
      visit_used(*linear);
    }
  }
  visit_ffn(layer.ffn);
  if (!layer.mixture) return;
  visit_used(layer.mixture->router);
  visit_used(layer.mixture->shared_gate);
  if (layer.mixture->shared) visit_ffn(*layer.mixture->shared);
  for (FfnWeights& expert : layer.mixture->experts) visit_ffn(expert);
}

struct ModelWeights {
  StoredMatrix embedding;  // [V, D]
  std::vector<LayerWeights> layers;
  // The embedding where it is trained, [V, D]; `embedding` is then a view of it.
  at::Tensor embedding_parameter;
  at::Tensor final_norm;  // [D]
  Linear head;            // [V, D]; of the embedding when tied
  bool tied = false;
  bool gguf = false;   // whether names are those of GGUF
  std::string prefix;  // "model." as the file spells it; empty in a GGUF file
};

struct NamedGain {
  std::string name;         // of the file's tensor
  std::string_view module;  // of transformers' module inside the layer: "input_layernorm"
  at::Tensor* gain;
};
// The gains of a layer's norms that the family has.
[[nodiscard]] std::vector<NamedGain> gains_of(LayerWeights& layer, const ModelConfig& config,
                                              const ModelWeights& weights, std::int64_t index);

// Views into the checkpoint, which must outlive them; gains and biases are copied in the residual
// type of `compute`. Throws an input error that names the file, the tensor, expected and found.
[[nodiscard]] ModelWeights find_weights(const Checkpoint& checkpoint, const ModelConfig& config,
                                        Compute compute, const Log& log);

}  // namespace onset
