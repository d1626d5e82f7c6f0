// The standard normal distribution. Torch-free.
#pragma once

namespace onset {

// P(Z <= z).
[[nodiscard]] double normal_cdf(double z);

// z with P(Z <= z) = p, to about 1e-15 relative (Wichura 1988, "Algorithm AS 241", PPND16);
// -infinity at 0, infinity at 1, NaN outside [0, 1].
[[nodiscard]] double normal_quantile(double p);

}  // namespace onset
