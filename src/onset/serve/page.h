// The page at "/": two answers side by side, unmasked and masked, and the first-token sink of each.
// Torch-free.
#pragma once

#include <string_view>

namespace onset {

// One HTML document that loads nothing else.
[[nodiscard]] std::string_view serve_page();
// Its Content-Security-Policy.
[[nodiscard]] const char* serve_page_policy();

}  // namespace onset
