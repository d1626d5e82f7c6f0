// The binomial distribution and the interval of one share. Torch-free.
#pragma once

#include <cstdint>

namespace onset {

// P(X = k) of X ~ Binomial(n, p), to about 1e-9 relative; 0 where k is not in 0..n.
[[nodiscard]] double binomial_pmf(std::int64_t k, std::int64_t n, double p);

// P(X <= k), each tail summed from its large end, so that small probabilities keep their digits.
[[nodiscard]] double binomial_cdf(std::int64_t k, std::int64_t n, double p);

struct Interval {
  double low = 0;
  double high = 0;
};

// Wilson's score interval of a share (Wilson 1927; Brown, Cai and DasGupta 2001, eq. 4) of k in n
// at confidence 1 - alpha: the shares that the normal test of k would not refuse. n >= 1.
[[nodiscard]] Interval wilson_interval(std::int64_t k, std::int64_t n, double alpha);

}  // namespace onset
