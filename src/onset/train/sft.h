// Supervised fine-tuning, and pre-training: cross-entropy of the trained tokens.
#pragma once

#include <optional>
#include <vector>

#include "onset/train/objective.h"
#include "onset/train/packing.h"

namespace onset {

class Policy;

struct SftOptions {
  WindowShape window;
  std::optional<std::uint64_t> shuffle_seed = {};  // none: in the order of the data
  std::uint64_t seed = 0;                          // of dropout
  std::int64_t eval_batch = 8;                     // rows at a time
};

class SftObjective : public Objective {
 public:
  // Rows of documents (packing.h); without packing one document a row. `rows` must not be empty;
  // `held_out` may. policy and ranks must outlive it.
  SftObjective(Policy& policy, std::vector<PackedRow> rows, std::vector<PackedRow> held_out,
               const SftOptions& options, const Ranks& ranks);

  [[nodiscard]] std::int64_t steps_per_epoch() const override;
  // loss, mean_token_accuracy, num_tokens (input tokens of the run so far), epoch.
  [[nodiscard]] Metrics accumulate(std::int64_t step) override;
  // eval_loss, eval_mean_token_accuracy.
  [[nodiscard]] Metrics evaluate() override;
  [[nodiscard]] OrderedJson progress() const override;
  void restore(const OrderedJson& progress) override;

 private:
  Policy& policy_;
  std::vector<PackedRow> rows_;
  std::vector<PackedRow> held_out_;
  SftOptions options_;
  const Ranks& ranks_;
  DataWalk walk_;
};

}  // namespace onset
