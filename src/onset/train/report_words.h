// Numbers in the sentences that a run says. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onset {

// 1234567 as "1,234,567".
[[nodiscard]] std::string grouped(std::int64_t count);
// "1 row", "2,000 rows".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view singular,
                                  std::string_view plural);
// One digit behind the point: "41.3".
[[nodiscard]] std::string percent(std::int64_t part, std::int64_t whole);
// "3.1 GiB", "12 MiB".
[[nodiscard]] std::string memory_words(std::int64_t bytes);

}  // namespace onset
