// How much of a head's output stands in memory at a time. Torch-free.
#pragma once

#include <cstdint>

namespace onset {

// Numbers of logits: the head runs over so many tokens at a time.
inline constexpr std::int64_t logits_at_once = std::int64_t{16} << 20;

}  // namespace onset
