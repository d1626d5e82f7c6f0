// Draws of Python's random.Random(seed).sample, by which lm-evaluation-harness chooses few-shot
// examples: the same seed gives the same examples. Torch-free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onset {

// The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded by its authors' init_by_array
// with the 32-bit digits of the seed, as CPython does for integers.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed);

  // Indices of k of n things, without repetition, in the order drawn: random.sample(range(n), k) of
  // Python 3.11 and later. k at most n.
  [[nodiscard]] std::vector<std::size_t> sample(std::size_t n, std::size_t k);

 private:
  static constexpr std::size_t words = 624;

  [[nodiscard]] std::uint32_t next();
  void refill();
  [[nodiscard]] std::size_t below(std::size_t n);

  std::array<std::uint32_t, words> state_{};
  std::size_t used_ = words;
};

}  // namespace onset
