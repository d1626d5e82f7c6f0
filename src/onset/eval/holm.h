// Holm's correction for several tests. Torch-free.
#pragma once

#include <span>
#include <vector>

namespace onset {

// Adjusted p-values in the order given (Holm 1979, "A Simple Sequentially Rejective Multiple Test
// Procedure"): the i-th smallest of m times m - i + 1, not below the one before it, at most 1.
// Refusing every test with an adjusted p <= alpha keeps the chance of even one false refusal at
// alpha, however the tests hang together. NaN is no test: it stays and counts for nothing.
[[nodiscard]] std::vector<double> holm_adjusted(std::span<const double> p);

}  // namespace onset
