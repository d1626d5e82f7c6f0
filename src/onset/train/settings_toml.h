// Settings as a TOML file: read, and written as they came out. Torch-free.
#pragma once

#include <filesystem>
#include <string>

#include "onset/base/json.h"
#include "onset/base/toml.h"
#include "onset/train/settings.h"

namespace onset {

// Puts the file's values into `settings`, whose method decides which keys there are. Throws input
// errors "FILE:LINE: key .." for a key that is not known (with the nearest one, or what to use in
// its place), a value of another type or out of its range.
void apply_settings(TomlTable table, TrainSettings& settings);
void read_settings(const std::filesystem::path& path, TrainSettings& settings);

// All settings of the method, but those that are not given, with groups as comments; read by
// apply_settings() they are the same again.
[[nodiscard]] std::string settings_toml(const TrainSettings& settings);

// Name and value of those that must be the same when a run goes on (TrainState::identity).
[[nodiscard]] OrderedJson curve_settings(const TrainSettings& settings);
// Of all of them.
[[nodiscard]] OrderedJson settings_json(const TrainSettings& settings);

}  // namespace onset
