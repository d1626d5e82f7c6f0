// What the library has to say beside its results: warnings and progress, handed to a sink that the
// program sets up. The library itself never prints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace onset {

struct Log {
  // Called from the thread that calls the library. Either may be empty.
  std::function<void(const std::string& message)> warn;
  // `done` of `total` steps of `what`; total 0 means unknown.
  std::function<void(const std::string& what, std::int64_t done, std::int64_t total)> progress;

  void warning(const std::string& message) const {
    if (warn) warn(message);
  }
  void step(const std::string& what, std::int64_t done, std::int64_t total) const {
    if (progress) progress(what, done, total);
  }
};

}  // namespace onset
