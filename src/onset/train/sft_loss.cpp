#include "onset/train/sft_loss.h"

#include <ATen/ATen.h>

#include "onset/base/error.h"

namespace onset {

at::Tensor sft_loss(const at::Tensor& logps, double window_tokens) {
  if (!(window_tokens > 0) || static_cast<double>(logps.numel()) > window_tokens) {
    throw usage_error(str_cat("a window of ", window_tokens, " trained tokens cannot hold ",
                              logps.numel(), " of a micro-batch"),
                      "count the trained tokens of all micro-batches and ranks of the step");
  }
  return logps.sum() / -window_tokens;
}

}  // namespace onset
