// Progress of items with the time that the rest will take.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "output.h"

namespace onset::app {

// As fast as so far, since the count last began anew.
class ItemProgress {
 public:
  explicit ItemProgress(Console& console) : console_(console) {}

  void operator()(const std::string& what, std::int64_t done, std::int64_t total);

 private:
  Console& console_;
  std::optional<std::chrono::steady_clock::time_point> begun_;
  std::int64_t first_ = 0;
};

}  // namespace onset::app
