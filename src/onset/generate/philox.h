// The counter-based random numbers of sampling. Torch-free.
#pragma once

#include <array>
#include <cstdint>

namespace onset {

// Philox 4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3"): ten rounds of
// a bijection of the counter, chosen by the key.
[[nodiscard]] std::array<std::uint32_t, 4> philox_4x32(std::array<std::uint32_t, 4> counter,
                                                       std::array<std::uint32_t, 2> key);

}  // namespace onset
