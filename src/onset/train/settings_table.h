// The one place that says what each setting of a run is called, which values it takes and what it
// does. The command line, TOML files, the echo of a run and the checks all read this table.
// Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "onset/train/settings.h"

namespace onset {

// A field that holds one of a few named values.
struct ChoiceSlot {
  std::vector<std::string> names;
  std::function<std::size_t()> get;
  std::function<void(std::size_t)> set;
};

// The field itself. Lists and maps replace what the field held.
using SettingSlot =
    std::variant<bool*, std::optional<bool>*, std::int64_t*, std::optional<std::int64_t>*, double*,
                 std::optional<double>*, std::string*, std::vector<std::string>*,
                 std::vector<double>*, std::map<std::string, std::string>*,
                 std::map<std::string, std::int64_t>*, std::map<std::string, double>*, ChoiceSlot>;

struct SettingRange {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is no value
  bool below_max = false;
};

struct Setting {
  std::string name;   // as TOML files spell it; the flag is "--" with "-" for "_"
  std::string group;  // "Data"
  std::string value;  // what stands for it in a help: "FILE"; empty for switches
  std::string help;
  SettingSlot slot;
  SettingRange range = {};  // of numbers
  bool separates = false;   // a list whose entries the command line may separate by commas
  bool is_path = false;
  bool shapes_curve = true;  // a run that goes on must have the same
};

// Those of settings.method, bound to `settings`, which must outlive them, in the order of a help.
[[nodiscard]] std::vector<Setting> settings_table(TrainSettings& settings);

// "--learning-rate"
[[nodiscard]] std::string flag_of(const Setting& setting);

// What is wrong with a number in the setting: "is -1, should be 0 or above"; empty: nothing.
[[nodiscard]] std::string range_fault(const Setting& setting, double value);
// Of what the field holds.
[[nodiscard]] std::string range_fault(const Setting& setting);

// Whether two tables' settings of one name hold the same value.
[[nodiscard]] bool same_value(const Setting& a, const Setting& b);

// What to do in place of a setting of TRL or transformers that onset has not; empty for other
// names. "use train_file".
[[nodiscard]] std::string_view advice_for(std::string_view name);

}  // namespace onset
