#include "onset/train/optimizer_options.h"

#include <cmath>

#include "onset/base/error.h"

namespace onset {

void check(const AdamWOptions& options) {
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (!is_beta(options.beta1) || !is_beta(options.beta2)) {
    throw usage_error(str_cat("Adam's betas are ", options.beta1, " and ", options.beta2,
                              ", expected 0 up to below 1"));
  }
  if (!(options.epsilon > 0)) {
    throw usage_error(str_cat("Adam's epsilon is ", options.epsilon, ", expected above 0"));
  }
  if (!(options.weight_decay >= 0)) {
    throw usage_error(str_cat("weight decay is ", options.weight_decay, ", expected 0 or above"));
  }
}

}  // namespace onset
