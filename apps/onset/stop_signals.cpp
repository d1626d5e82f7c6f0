#include "stop_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "onset/base/error.h"

namespace onset::app {
namespace {

// A handler can reach nothing else.
int pipe_ends[2] = {-1, -1};
std::atomic<bool> is_ready = false;
std::atomic<bool> has_come = false;
StopSignals::Ways ways_now;

extern "C" void on_stop(int /*signal*/) {
  if (!is_ready.load(std::memory_order_relaxed)) ::_exit(ways_now.early_exit);
  const int saved = errno;
  const bool again = has_come.exchange(true);
  if (again && ways_now.again_ends) ::_exit(1);
  if (!again && ways_now.said != nullptr) {
    static_cast<void>(!::write(STDERR_FILENO, ways_now.said, std::strlen(ways_now.said)));
  }
  static_cast<void>(!::write(pipe_ends[1], "x", 1));
  errno = saved;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals(const Ways& ways) {
  ways_now = ways;
  has_come = false;
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw resource_error("the system gives no pipe");
  }
  set_handler(on_stop);
}

StopSignals::~StopSignals() {
  set_handler(SIG_DFL);
  is_ready = false;
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

void StopSignals::ready() { is_ready = true; }

void StopSignals::wait() {
  while (!wait_for(std::chrono::hours(24))) {
  }
}

bool StopSignals::wait_for(std::chrono::milliseconds patience) {
  pollfd entry{pipe_ends[0], POLLIN, 0};
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    const int count = ::poll(&entry, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (count == 0) return false;
    char byte = 0;
    if (count > 0 && ::read(pipe_ends[0], &byte, 1) == 1) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

}  // namespace onset::app
