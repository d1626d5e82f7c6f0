// SIGINT and SIGTERM as something to wait for, in place of the end of the process.
#pragma once

#include <chrono>

namespace onset::app {

// One at a time; made before the threads whose system calls it must not disturb.
class StopSignals {
 public:
  StopSignals();
  // Gives the signals their old meaning.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Until ready() a signal ends the process with exit code 0: there is nothing to finish.
  void ready();
  void wait();
  // False when none came in time.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds patience);
};

}  // namespace onset::app
