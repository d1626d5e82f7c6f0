// This process: its start, its memory, and the `run` object of results.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "onset/base/json.h"

namespace onset::app {

// How the program was called.
struct Invocation {
  std::vector<std::string> command;    // all of argv
  std::vector<std::string> arguments;  // what follows the verb
  std::chrono::system_clock::time_point started;
  std::chrono::steady_clock::time_point clock;
};

// Standard streams that were closed become ones that fail, so that no file opened later takes their
// number. A reader that leaves and a file that grows beyond the limit are errors of write() and not
// signals. A model file that shrinks while it is mapped, and an exception that nobody can catch,
// end the process with a message and exit code 1.
void prepare_process();

[[nodiscard]] std::int64_t peak_memory_bytes();

// version, command, started, seconds, peak_memory_bytes: what may differ between two equal runs.
[[nodiscard]] OrderedJson run_json(const Invocation& invocation);

}  // namespace onset::app
