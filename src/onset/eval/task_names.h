// A name of a few, in a task's file. Torch-free.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onset/base/strings.h"
#include "onset/base/toml.h"

namespace onset {

// The value that `given` stands for. Throws an input error that lists the names and has the
// nearest.
template <typename Value, std::size_t count>
Value one_of(const TomlTable& table, const std::string& key, const std::string& given,
             const std::array<std::pair<std::string_view, Value>, count>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) {
    if (given == name) return value;
    names.emplace_back(name);
  }
  throw table.error(key, str_cat(quote(given), " is not known; known are ", join(names, ", ")),
                    did_you_mean(nearest(given, names)));
}

}  // namespace onset
