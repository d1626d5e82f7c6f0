// Lower case of Unicode text. Torch-free.
#pragma once

#include <string>
#include <string_view>

namespace onset {

// Each code point's simple lower case; `text` is valid UTF-8. Python's str.lower() differs for two
// letters alone (a dotted capital I becomes two code points, a final sigma its own form).
[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace onset
