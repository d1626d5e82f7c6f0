#include "process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <ctime>

#include "onset/base/error.h"

namespace onset::app {
void prepare_process() {
  // O_PATH and not /dev/null: writing to it has to fail.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/", O_PATH));
  }
  std::signal(SIGPIPE, SIG_IGN);
}

std::int64_t peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

OrderedJson run_json(const Invocation& invocation) {
  const auto seconds = std::chrono::system_clock::to_time_t(invocation.started);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> started{};
  std::strftime(started.data(), started.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  OrderedJson command = OrderedJson::array();
  for (const auto& argument : invocation.command) command.push_back(valid_utf8(argument));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - invocation.clock;
  return {{"version", ONSET_VERSION},
          {"command", command},
          {"started", started.data()},
          {"seconds", std::round(elapsed.count() * 1e4) / 1e4},
          {"peak_memory_bytes", peak_memory_bytes()}};
}

}  // namespace onset::app
