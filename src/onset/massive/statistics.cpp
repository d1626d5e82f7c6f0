#include "onset/massive/statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace onset {
namespace {

constexpr std::uint32_t sign_bit = 0x8000'0000U;
constexpr std::uint32_t exponent_bits = 0x7F80'0000U;

// The bits of |value|: as integers they are ordered as the absolute values are.
std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & ~sign_bit;
}

bool before(const StateEntry& a, const StateEntry& b) {
  const float x = std::fabs(a.value);
  const float y = std::fabs(b.value);
  if (x != y) return x > y;
  return a.token != b.token ? a.token < b.token : a.dim < b.dim;
}

}  // namespace

// Radix selection: three passes over the bits of |x|, 11 + 11 + 9, each narrowing down the bucket
// that holds the wanted rank.
float lower_median_abs(std::span<const float> values) {
  constexpr std::array<int, 3> shifts{20, 9, 0};
  constexpr std::array<int, 3> widths{11, 11, 9};
  std::size_t rank = (values.size() - 1) / 2;
  std::uint32_t prefix = 0;
  std::uint32_t prefix_mask = 0;
  for (std::size_t pass = 0; pass < shifts.size(); ++pass) {
    std::array<std::size_t, 1 << 11> counts{};
    const std::uint32_t bucket_mask = (1U << widths[pass]) - 1U;
    for (const float value : values) {
      const std::uint32_t bits = magnitude_bits(value);
      if ((bits & prefix_mask) == prefix) ++counts[bits >> shifts[pass] & bucket_mask];
    }
    std::uint32_t bucket = 0;
    while (rank >= counts[bucket]) rank -= counts[bucket++];
    prefix |= bucket << shifts[pass];
    prefix_mask |= bucket_mask << shifts[pass];
  }
  return std::bit_cast<float>(prefix);
}

std::vector<StateEntry> largest_entries(const StateView& state, std::int64_t count) {
  const std::size_t wanted =
      std::min(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), state.values.size());
  std::vector<StateEntry> heap;  // the best so far, the least of them in front
  heap.reserve(wanted);
  if (wanted == 0) return heap;
  for (std::size_t i = 0; i < state.values.size(); ++i) {
    if (heap.size() == wanted && std::fabs(state.values[i]) <= std::fabs(heap.front().value)) {
      continue;  // a later entry of the same size ranks behind
    }
    if (heap.size() == wanted) {
      std::pop_heap(heap.begin(), heap.end(), before);
      heap.pop_back();
    }
    heap.push_back(state.entry(i));
    std::push_heap(heap.begin(), heap.end(), before);
  }
  std::sort(heap.begin(), heap.end(), before);
  return heap;
}

std::vector<StateEntry> entries_above(const StateView& state, double threshold, std::int64_t limit,
                                      std::int64_t& total) {
  std::vector<StateEntry> entries;
  total = 0;
  for (std::size_t i = 0; i < state.values.size(); ++i) {
    if (static_cast<double>(std::fabs(state.values[i])) <= threshold) continue;
    ++total;
    if (total <= limit) entries.push_back(state.entry(i));
  }
  if (total > limit) return largest_entries(state, limit);
  std::sort(entries.begin(), entries.end(), before);
  return entries;
}

std::vector<std::int64_t> largest_dims(const StateView& state) {
  std::vector<std::int64_t> dims;
  const auto hidden = static_cast<std::size_t>(state.hidden);
  for (std::size_t row = 0; row < state.values.size(); row += hidden) {
    const std::span<const float> values = state.values.subspan(row, hidden);
    std::size_t best = 0;
    for (std::size_t d = 1; d < hidden; ++d) {
      if (std::fabs(values[d]) > std::fabs(values[best])) best = d;
    }
    dims.push_back(static_cast<std::int64_t>(best));
  }
  return dims;
}

std::int64_t first_not_finite(std::span<const float> values) {
  const auto found = std::find_if(values.begin(), values.end(), [](float value) {
    return magnitude_bits(value) >= exponent_bits;
  });
  return found == values.end() ? -1 : found - values.begin();
}

}  // namespace onset
