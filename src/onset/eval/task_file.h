// Tasks from TOML files: docs/tasks.md has the format. Torch-free.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "onset/eval/task.h"

namespace onset {

// Throws an input error with file, line and key for what the format does not have: an unknown key
// (with the nearest known one), a key that its kind of task does not read, a template or a regex
// that is not one, a metric of another kind.
[[nodiscard]] TaskFile parse_task_file(std::string_view text, const std::string& where);
[[nodiscard]] TaskFile read_task_file(const std::filesystem::path& path);

}  // namespace onset
