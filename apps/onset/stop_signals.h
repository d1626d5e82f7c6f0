// SIGINT and SIGTERM as something to wait for, in place of the end of the process.
#pragma once

#include <chrono>

namespace onset::app {

// One at a time; made before the threads whose system calls it must not disturb.
class StopSignals {
 public:
  // What signals do beside.
  struct Ways {
    int early_exit = 0;          // code of a process that ends before ready()
    const char* said = nullptr;  // to standard error when one comes; must live as long as this
    bool again_ends = false;     // a second one ends the process with code 1
  };

  StopSignals() : StopSignals(Ways{}) {}
  explicit StopSignals(const Ways& ways);
  // Gives the signals their old meaning.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Until ready() a signal ends the process at once: there is nothing to finish.
  void ready();
  void wait();
  // False when none came in time.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds patience);
};

}  // namespace onset::app
