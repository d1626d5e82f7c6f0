// Keys, values and queries of one position beside the others, per layer. Inside the massive room.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "onset/massive/dose.h"

namespace onset {

class Hooks;

// Adds the mean norm of row `position` of states [T, heads, K], and the median norm of the others.
void add_norms(const at::Tensor& states, std::int64_t position, double& own, double& others);

class KeyMeter {
 public:
  KeyMeter(std::int64_t layers, std::int64_t position);
  void observe(Hooks& hooks) const;
  // Means over the samples seen; NaN where no sample is longer than the position.
  [[nodiscard]] std::vector<KeyReading> readings() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace onset
