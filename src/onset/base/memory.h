// How much memory there is for this process.
#pragma once

#include <cstdint>
#include <optional>

namespace onset {

// Bytes that can be taken without swapping: what the system has left, or the process's group where
// that is less. None where the system does not say.
[[nodiscard]] std::optional<std::int64_t> available_memory();

}  // namespace onset
