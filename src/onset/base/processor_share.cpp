#include "onset/base/processor_share.h"

#include <ctime>

namespace onset {
namespace {

constexpr double enough_seconds = 0.25;
constexpr double least_share = 0.6;

double processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

void ProcessorShare::begin() {
  began_ = Clock::now();
  processor_began_ = processor_time();
}

void ProcessorShare::end() {
  wall_seconds_ += std::chrono::duration<double>(Clock::now() - began_).count();
  processor_seconds_ += processor_time() - processor_began_;
}

bool ProcessorShare::is_short() {
  if (wall_seconds_ < enough_seconds) return false;
  const double share = processor_seconds_ / (wall_seconds_ * threads_);
  wall_seconds_ = 0;
  processor_seconds_ = 0;
  return share < least_share;
}

}  // namespace onset
