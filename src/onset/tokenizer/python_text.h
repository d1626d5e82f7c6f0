// The string functions of Python that chat templates and evaluation harnesses call.
#pragma once

#include <string>
#include <string_view>

#include "onset/base/json.h"

namespace onset {

// str.strip(): Unicode white space and U+001C to U+001F. `text` is valid UTF-8.
[[nodiscard]] std::string_view python_strip(std::string_view text);
// str.rstrip() of the same.
[[nodiscard]] std::string_view python_rstrip(std::string_view text);
// str.lstrip("\n") and str.rstrip("\n").
[[nodiscard]] std::string_view strip_newlines_left(std::string_view text);
[[nodiscard]] std::string_view strip_newlines_right(std::string_view text);
// json.dumps(value, ensure_ascii=False): keys as given, ", " and ": " between.
[[nodiscard]] std::string python_json(const OrderedJson& value);

}  // namespace onset
