// Whole numbers drawn evenly below a bound, the same on every machine. Torch-free.
#pragma once

#include <cstdint>
#include <random>

namespace onset {

// Lemire 2019, "Fast Random Integer Generation in an Interval", on the two halves of each number of
// a Mersenne Twister. (std::uniform_int_distribution differs between standard libraries.)
class IndexDraws {
 public:
  explicit IndexDraws(std::uint64_t seed) : generator_(seed) {}

  // 0 to bound - 1; bound >= 1.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = std::uint64_t{next()} * bound;
    auto low = static_cast<std::uint32_t>(product);
    if (low < bound) {
      const std::uint32_t threshold = (0U - bound) % bound;
      while (low < threshold) {
        product = std::uint64_t{next()} * bound;
        low = static_cast<std::uint32_t>(product);
      }
    }
    return static_cast<std::uint32_t>(product >> 32U);
  }

  [[nodiscard]] std::uint64_t bits() { return generator_(); }

 private:
  [[nodiscard]] std::uint32_t next() {
    if (left_) {
      left_ = false;
      return static_cast<std::uint32_t>(number_ >> 32U);
    }
    number_ = generator_();
    left_ = true;
    return static_cast<std::uint32_t>(number_);
  }

  std::mt19937_64 generator_;
  std::uint64_t number_ = 0;
  bool left_ = false;  // is the upper half of `number_` not used yet?
};

}  // namespace onset
