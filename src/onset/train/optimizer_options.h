// What AdamW can be told; optimizer.h has the formula. Torch-free.
#pragma once

namespace onset {

// Which tensors decay.
enum class WeightDecay {
  all,
  // Matrices and embeddings; norms and biases, which have one dimension, stay (transformers'
  // Trainer, and TRL with it).
  matrices,
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  WeightDecay decays = WeightDecay::matrices;
};

// Throws a usage error for options out of their range.
void check(const AdamWOptions& options);

}  // namespace onset
