// The weights of a decoder, found in a checkpoint under either format's names and checked.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "onset/base/log.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"
#include "onset/model/linear.h"

namespace onset {

struct AttentionWeights {
  Linear q;           // [H*K, D]
  Linear k;           // [G*K, D]
  Linear v;           // [G*K, D]
  Linear o;           // [D, H*K]
  at::Tensor q_norm;  // [K] (per head) or [H*K] (whole), undefined without QK-norm
  at::Tensor k_norm;  // [K] or [G*K]
};

struct FfnWeights {
  Linear gate;  // [F, D]
  Linear up;    // [F, D]
  Linear down;  // [D, F]
};

struct LayerWeights {
  // RMSNorm gains [D], as they multiply (1 is already added where the family stores w - 1);
  // undefined where the family has no such norm.
  at::Tensor attn_norm;       // before attention
  at::Tensor attn_post_norm;  // on attention's output
  AttentionWeights attention;
  at::Tensor ffn_norm;
  at::Tensor ffn_post_norm;
  FfnWeights ffn;
  // What streaming reads ahead and drops behind.
  std::vector<const TensorInfo*> tensors;
};

struct ModelWeights {
  StoredMatrix embedding;  // [V, D]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;  // [D]
  Linear head;            // [V, D]; of the embedding when tied
  bool tied = false;
};

// Views into the checkpoint, which must outlive them; gains and biases are copied in the residual
// type of `compute`. Throws an input error that names the file, the tensor, expected and found.
[[nodiscard]] ModelWeights find_weights(const Checkpoint& checkpoint, const ModelConfig& config,
                                        Compute compute, const Log& log);

}  // namespace onset
