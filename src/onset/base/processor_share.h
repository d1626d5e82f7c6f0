// Whether others take the processors that this process's threads work on.
#pragma once

#include <chrono>

namespace onset {

// Threads that spin while they wait use their processors fully; so where a stretch of work used
// much less processor time than its threads had, other processes had it. Then spinning is worse
// than sleeping (spin_briefly of model/runtime.h).
class ProcessorShare {
 public:
  explicit ProcessorShare(int threads) : threads_(threads) {}

  // Around each stretch of work; what lies between stretches does not count.
  void begin();
  void end();
  // Whether the stretches since the last look, at least a quarter of a second of them, got less
  // than six tenths of the time of all threads. False, and no new look, before there is as much.
  [[nodiscard]] bool is_short();

 private:
  using Clock = std::chrono::steady_clock;

  int threads_;
  Clock::time_point began_;
  double processor_began_ = 0;
  double wall_seconds_ = 0;
  double processor_seconds_ = 0;
};

}  // namespace onset
