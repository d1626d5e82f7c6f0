// Numbers in the sentences that a run says. Torch-free.
#pragma once

#include <cstdint>
#include <string>

namespace onset {

// One digit behind the point: "41.3".
[[nodiscard]] std::string percent(std::int64_t part, std::int64_t whole);
// "3.1 GiB", "12 MiB".
[[nodiscard]] std::string memory_words(std::int64_t bytes);

}  // namespace onset
