#include "onset/wemask/selection.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "onset/base/mixing.h"

namespace onset {
namespace {

std::vector<std::int64_t> choose(std::span<const float> values, std::int64_t k, bool largest) {
  std::vector<std::int64_t> dims(values.size());
  std::iota(dims.begin(), dims.end(), 0);
  const auto size_of = [&](std::int64_t dim) {
    const float size = std::fabs(values[static_cast<std::size_t>(dim)]);
    return std::isnan(size) ? -1.0F : size;
  };
  std::partial_sort(dims.begin(), dims.begin() + k, dims.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      const float left = size_of(a);
                      const float right = size_of(b);
                      if (left != right) return largest ? left > right : left < right;
                      return a < b;
                    });
  dims.resize(static_cast<std::size_t>(k));
  return dims;
}

}  // namespace

std::vector<std::int64_t> largest_dims(std::span<const float> values, std::int64_t k) {
  return choose(values, k, true);
}

std::vector<std::int64_t> smallest_dims(std::span<const float> values, std::int64_t k) {
  return choose(values, k, false);
}

std::vector<std::int64_t> random_dims(std::uint64_t seed, std::int64_t layer, std::int64_t hidden,
                                      std::int64_t k) {
  SplitMix mixer(seed);
  SplitMix random(mixer.next() ^ static_cast<std::uint64_t>(layer) * 0xD1342543DE82EF95U);
  std::vector<std::int64_t> dims(static_cast<std::size_t>(hidden));
  std::iota(dims.begin(), dims.end(), 0);
  // Fisher and Yates from the front, as far as it is needed.
  for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
    std::swap(dims[i], dims[i + random.below(dims.size() - i)]);
  }
  dims.resize(static_cast<std::size_t>(k));
  return dims;
}

double jaccard(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const std::set<std::int64_t> left(a.begin(), a.end());
  const std::set<std::int64_t> right(b.begin(), b.end());
  const auto common = std::count_if(left.begin(), left.end(),
                                    [&](std::int64_t dim) { return right.contains(dim); });
  const auto all = static_cast<std::int64_t>(left.size() + right.size()) - common;
  return all == 0 ? 1.0 : static_cast<double>(common) / static_cast<double>(all);
}

}  // namespace onset
