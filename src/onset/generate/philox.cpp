#include "onset/generate/philox.h"

namespace onset {
namespace {

constexpr int rounds = 10;
constexpr std::array<std::uint32_t, 2> multipliers{0xD2511F53, 0xCD9E8D57};
// What the key grows by between rounds: the golden ratio and sqrt(3) - 1 as fractions of 2^32.
constexpr std::array<std::uint32_t, 2> key_steps{0x9E3779B9, 0xBB67AE85};

}  // namespace

std::array<std::uint32_t, 4> philox_4x32(std::array<std::uint32_t, 4> counter,
                                         std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = std::uint64_t{multipliers[0]} * counter[0];
    const std::uint64_t second = std::uint64_t{multipliers[1]} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32U) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32U) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += key_steps[0];
    key[1] += key_steps[1];
  }
  return counter;
}

}  // namespace onset
