// SHA-256 (FIPS 180-4), by which results name prompts and documents as other tools do.
#pragma once

#include <string>
#include <string_view>

namespace onset {

// 64 hexadecimal digits, lower case.
[[nodiscard]] std::string sha256(std::string_view bytes);

}  // namespace onset
