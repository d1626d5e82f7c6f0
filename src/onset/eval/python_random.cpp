#include "onset/eval/python_random.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_set>

namespace onset {

PythonRandom::PythonRandom(std::uint64_t seed) {
  std::vector<std::uint32_t> key{static_cast<std::uint32_t>(seed)};
  if ((seed >> 32) != 0) key.push_back(static_cast<std::uint32_t>(seed >> 32));
  state_[0] = 19650218U;
  for (std::size_t i = 1; i < words; ++i) {
    state_[i] =
        1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + static_cast<std::uint32_t>(i);
  }
  std::size_t i = 1;
  std::size_t j = 0;
  const auto step = [&] {
    if (++i < words) return;
    state_[0] = state_[words - 1];
    i = 1;
  };
  for (std::size_t count = words; count > 0; --count) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525U)) + key[j] +
                static_cast<std::uint32_t>(j);
    step();
    j = (j + 1) % key.size();
  }
  for (std::size_t count = words - 1; count > 0; --count) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941U)) -
                static_cast<std::uint32_t>(i);
    step();
  }
  state_[0] = 0x80000000U;
}

void PythonRandom::refill() {
  constexpr std::size_t offset = 397;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint32_t joined =
        (state_[i] & 0x80000000U) | (state_[(i + 1) % words] & 0x7FFFFFFFU);
    state_[i] =
        state_[(i + offset) % words] ^ (joined >> 1) ^ ((joined & 1U) != 0 ? 0x9908B0DFU : 0U);
  }
  used_ = 0;
}

std::uint32_t PythonRandom::next() {
  if (used_ == words) refill();
  std::uint32_t value = state_[used_++];
  value ^= value >> 11;
  value ^= (value << 7) & 0x9D2C5680U;
  value ^= (value << 15) & 0xEFC60000U;
  return value ^ (value >> 18);
}

std::size_t PythonRandom::below(std::size_t n) {
  // getrandbits(k): the highest bits of one word; n is below 2^32 here.
  const int bits = static_cast<int>(std::bit_width(n));
  std::size_t value = next() >> (32 - bits);
  while (value >= n) value = next() >> (32 - bits);
  return value;
}

std::vector<std::size_t> PythonRandom::sample(std::size_t n, std::size_t k) {
  std::vector<std::size_t> drawn;
  drawn.reserve(k);
  // Python keeps a list of what is left where that is smaller than a set of what was drawn.
  std::size_t list_limit = 21;
  if (k > 5) {
    list_limit += static_cast<std::size_t>(
        std::pow(4, std::ceil(std::log(static_cast<double>(k * 3)) / std::log(4.0))));
  }
  if (n <= list_limit) {
    std::vector<std::size_t> left(n);
    std::iota(left.begin(), left.end(), std::size_t{0});
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t j = below(n - i);
      drawn.push_back(left[j]);
      left[j] = left[n - i - 1];
    }
    return drawn;
  }
  std::unordered_set<std::size_t> taken;
  while (drawn.size() < k) {
    const std::size_t j = below(n);
    if (taken.insert(j).second) drawn.push_back(j);
  }
  return drawn;
}

}  // namespace onset
