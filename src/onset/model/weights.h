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
  at::Tensor q_norm;  // [K], undefined without QK-norm
  at::Tensor k_norm;
};

struct FfnWeights {
  Linear gate;  // [F, D]
  Linear up;    // [F, D]
  Linear down;  // [D, F]
};

struct LayerWeights {
  at::Tensor attn_norm;  // [D] RMSNorm gain
  AttentionWeights attention;
  at::Tensor ffn_norm;  // [D]
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
