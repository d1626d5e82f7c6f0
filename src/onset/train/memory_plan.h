// What a run needs of memory, before it starts. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onset/checkpoint/checkpoint.h"
#include "onset/model/config.h"
#include "onset/train/settings.h"

namespace onset {

struct MemoryFacts {
  std::int64_t weights = 0;         // of the model
  std::int64_t trained = 0;         // of them, or of an adapter's own
  std::int64_t stored_bytes = 0;    // of the weights in the file
  std::int64_t stored_as_bf16 = 0;  // weights that the file holds in bfloat16
  std::int64_t longest = 0;         // tokens of the longest row, pair's sequence or prompt
  std::int64_t examples = 0;        // rows, pairs or prompts that there are; 0: not known
  bool rounds_in_products = false;  // trained weights need no copy in bfloat16 on this CPU
};

// The model's part of them: weights, stored_bytes, stored_as_bf16.
[[nodiscard]] MemoryFacts memory_facts(const Checkpoint& checkpoint);

struct MemoryPlan {
  std::vector<std::pair<std::string, std::int64_t>> parts;  // what, and bytes
  std::string device = "cpu";                               // whose memory it is
  // Of activations and gradients, bytes that one takes after the other: the backward pass lets go
  // of a block's activations and makes its gradients. None where gradients stay for more than one
  // micro-batch.
  std::int64_t in_turn = 0;

  [[nodiscard]] std::int64_t total() const;
  // "Memory: 3.9 GiB: weights .. ", for people.
  [[nodiscard]] std::string text() const;
};

// An estimate for one process; docs/train.md compares it with what was measured.
//   weights       4 bytes each where all are trained (and 2 in bf16, for GRPO and where the CPU's
//                 products want them converted); of an adapter's base as stored, or in bf16 2; on a
//                 GPU 4, or 2 in bf16
//   gradients and moments  4 + 8 bytes a trained weight
//   activations   of the tokens of a micro-batch, which holds no more than there are examples: a
//                 block keeps about 4 D + 2 H K + 2 G K + 2 F numbers a token (F of the experts a
//                 token is sent to), of which bf16 rounds 2 D + H K + 2 F to 2 bytes (with an
//                 adapter 2 F), or with gradient_checkpointing D; and one block is worked on
//   head          logits of a part of the tokens, the head turned, and the embedding's gradient
[[nodiscard]] MemoryPlan memory_plan(const TrainSettings& settings, const ModelConfig& config,
                                     const MemoryFacts& facts);

// Throws a resource error that names the largest part and the setting that would make it smaller
// where the plan, which is of these facts, does not fit.
void refuse_what_cannot_fit(const MemoryPlan& plan, const TrainSettings& settings,
                            const MemoryFacts& facts, std::optional<std::int64_t> available);

// The same of trained weights alone, before they are made: their values, gradients and moments
// (16 bytes each). Of an adapter by lora_r, and of a new model by the sizes in its settings.
void refuse_an_adapter_that_cannot_fit(double weights, std::optional<std::int64_t> available);
void refuse_a_new_model_that_cannot_fit(double weights, std::optional<std::int64_t> available);

}  // namespace onset
