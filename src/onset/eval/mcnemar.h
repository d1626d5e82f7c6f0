// McNemar's test of two runs over the same items, right or wrong in each. Torch-free.
#pragma once

#include <cstdint>

#include "onset/eval/binomial.h"

namespace onset {

// McNemar (1947) in its exact form: given that w + l items changed, each went to either side with
// probability 1/2 where no run is better, so wins ~ Binomial(w + l, 1/2). Items that are right in
// both runs, or wrong in both, say nothing about the difference.
struct McNemarTest {
  std::int64_t wins = 0;    // wrong in A, right in B
  std::int64_t losses = 0;  // right in A, wrong in B
  double p = 1;             // two-sided: min(1, 2 P(X <= min(w, l))); 1 where nothing changed
  // The same with half of P(X = min(w, l)): less cautious, closer to its nominal level (Fagerland,
  // Lydersen and Laake 2013). 1 where w = l.
  double mid_p = 1;
};

[[nodiscard]] McNemarTest mcnemar_test(std::int64_t wins, std::int64_t losses);

// Probability that the exact test of n items comes out at p <= alpha, where an item is a win with
// probability `win` and a loss with probability `loss` (win + loss <= 1): the sum over the number
// of changed items, each with the binomial tails that the test refuses.
[[nodiscard]] double mcnemar_power(std::int64_t n, double win, double loss, double alpha);

// Interval of `win` - `loss` by Bonett and Price (2012): one item added to either side, then the
// normal interval. Keeps near its nominal coverage where few items changed, and has a width where
// none did. n >= 1.

[[nodiscard]] Interval bonett_price_interval(std::int64_t wins, std::int64_t losses, std::int64_t n,
                                             double alpha);

}  // namespace onset
