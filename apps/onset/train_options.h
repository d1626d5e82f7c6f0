// The command line of `train sft|dpo|grpo|pretrain`: the settings of onset/train/settings_table.h
// as flags, above those of a TOML file, above the defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onset/train/settings.h"

namespace onset::app {

struct TrainOptions {
  TrainSettings settings;       // as they were given; checked_settings() refuses and fills in
  bool print_settings = false;  // print them, checked, and leave
  std::int64_t threads = 0;
  bool quiet = false;
};

// `arguments`: those behind the method's name. TRL's spelling of the flags, with "_", is taken too.
// Nothing when the help was asked for and printed. Throws usage errors; input errors of the file.
[[nodiscard]] std::optional<TrainOptions> parse_train_options(
    TrainMethod method, const std::vector<std::string>& arguments);

// The help, as --help prints it.
[[nodiscard]] std::string train_help(TrainMethod method);

// Throws a usage error where the model, the data or the output folder is not named.
void require_files(const TrainSettings& settings);

}  // namespace onset::app
