// JSON of files that others write, a checkpoint's config.json for one: an object that names a key
// twice is taken as most readers take it, the last value counts. parse_json and parse_ordered_json
// (base/json.h) refuse it, since one of the values would be lost without a word.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "onset/base/json.h"

namespace onset {

// Errors as of parse_json.
[[nodiscard]] Json parse_lenient_json(std::string_view text, const std::string& where);
[[nodiscard]] Json read_lenient_json(const std::filesystem::path& path);

}  // namespace onset
