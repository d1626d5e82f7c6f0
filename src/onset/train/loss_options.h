// What the losses of DPO and GRPO can be told; dpo_loss.h and grpo_loss.h have the formulas.
// Torch-free.
#pragma once

#include <cstdint>

namespace onset {

enum class DpoLossType { sigmoid, robust, ipo, ipo_sum };

struct DpoLossOptions {
  DpoLossType type = DpoLossType::sigmoid;
  double beta = 0.1;             // above 0
  double label_smoothing = 0.0;  // e: 0 up to, not including, 0.5; sigmoid and robust only
};

enum class GrpoLossType { grpo, bnpo, dapo, dr_grpo };

struct GrpoLossOptions {
  GrpoLossType type = GrpoLossType::dapo;
  double epsilon_low = 0.2;   // 0 up to 1
  double epsilon_high = 0.2;  // 0 or above
  double beta = 0.0;          // 0 or above; 0: no KL term
  bool kl_times_ratio = false;
  std::int64_t max_completion_length = 0;  // read by dr_grpo alone
};

// Throw a usage error for options out of their range or without effect.
void check(const DpoLossOptions& options);
void check(const GrpoLossOptions& options);

}  // namespace onset
