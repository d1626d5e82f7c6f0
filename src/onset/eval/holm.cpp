#include "onset/eval/holm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace onset {

std::vector<double> holm_adjusted(std::span<const double> p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!std::isnan(p[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.begin(), p.end());
  double before = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto factor = static_cast<double>(order.size() - rank);
    before = std::min(1.0, std::max(before, factor * p[order[rank]]));
    adjusted[order[rank]] = before;
  }
  return adjusted;
}

}  // namespace onset
