// Dividing many prompts among forward calls. Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onset {

// Prompts share a pass over the weights up to this many tokens: few passes, bounded activations.
inline constexpr std::int64_t rows_per_pass = 4096;

struct PromptRange {
  std::size_t begin = 0;
  std::size_t end = 0;  // one behind the last
};

// Consecutive ranges whose lengths add up to `rows` at most; a longer prompt is alone.
[[nodiscard]] std::vector<PromptRange> divide(std::span<const std::int64_t> lengths,
                                              std::int64_t rows = rows_per_pass);

}  // namespace onset
