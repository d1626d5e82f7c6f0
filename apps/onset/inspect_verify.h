// Reads every byte of every tensor and judges the values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "onset/checkpoint/checkpoint.h"

namespace onset::app {

// Of one tensor, in the order of Checkpoint::tensors().
struct TensorCheck {
  bool judged = false;  // false for integers and types that are not decoded: read, not judged
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t first_bad = -1;  // index of the first value that is not finite
  float min = 0;                // of the finite values; min > max where there is none
  float max = 0;

  [[nodiscard]] bool bad() const { return nan + infinite > 0; }
};

struct Verification {
  std::vector<TensorCheck> tensors;
  std::int64_t bytes = 0;
  double seconds = 0;

  [[nodiscard]] bool bad() const;
};

// Pages are given back behind the reading. `progress` is called from the calling thread with bytes
// done and their total.
[[nodiscard]] Verification verify_tensors(
    const Checkpoint& checkpoint, int threads,
    const std::function<void(std::int64_t done, std::int64_t total)>& progress);

}  // namespace onset::app
