#include "onset/train/loss_options.h"

#include "onset/base/error.h"

namespace onset {
namespace {

bool smooths(DpoLossType type) {
  return type == DpoLossType::sigmoid || type == DpoLossType::robust;
}

}  // namespace

void check(const DpoLossOptions& options) {
  if (!(options.beta > 0)) {
    throw usage_error(str_cat("DPO's beta is ", options.beta, ", expected above 0"));
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 0.5)) {
    throw usage_error(
        str_cat("label smoothing is ", options.label_smoothing, ", expected 0 up to below 0.5"));
  }
  if (options.label_smoothing > 0 && !smooths(options.type)) {
    throw usage_error("label smoothing has no effect on ipo",
                      "leave it out, or choose sigmoid or robust");
  }
}

void check(const GrpoLossOptions& options) {
  if (!(options.epsilon_low >= 0 && options.epsilon_low < 1)) {
    throw usage_error(
        str_cat("GRPO's lower epsilon is ", options.epsilon_low, ", expected 0 up to below 1"));
  }
  if (!(options.epsilon_high >= 0)) {
    throw usage_error(
        str_cat("GRPO's upper epsilon is ", options.epsilon_high, ", expected 0 or above"));
  }
  if (!(options.beta >= 0)) {
    throw usage_error(str_cat("GRPO's beta is ", options.beta, ", expected 0 or above"));
  }
  if (options.type == GrpoLossType::dr_grpo && options.max_completion_length < 1) {
    throw usage_error("dr_grpo divides by the longest completion allowed, which is not given",
                      "set max_completion_length");
  }
}

}  // namespace onset
