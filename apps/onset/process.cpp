#include "process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <ctime>
#include <exception>
#include <new>
#include <string_view>

#include "onset/base/error.h"

namespace onset::app {
namespace {

// Without memory and safe in a signal handler.
[[noreturn]] void die(std::string_view message) {
  static_cast<void>(!::write(STDERR_FILENO, message.data(), message.size()));
  ::_exit(1);
}

void on_bus_error(int /*signal*/) {
  die("onset: a model file changed or could not be read while it was mapped\n");
}

[[noreturn]] void on_terminate() {
  if (const auto exception = std::current_exception()) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::bad_alloc&) {
      die("onset: out of memory\n");
    } catch (...) {
      die("onset: failed, and the error could not be reported\n");
    }
  }
  die("onset: failed, and the error could not be reported\n");
}

// Runs before the initialisers of the shared libraries. libtorch's may fail for want of memory, and
// in a working directory that was deleted MKL's end the process with a text about a library.
__attribute__((no_sanitize("address"))) void before_libraries() {
  std::set_terminate(on_terminate);
  static char path[1];
  // Where the directory is there the buffer is too small for it: ERANGE.
  if (::getcwd(path, sizeof path) == nullptr && errno == ENOENT) {
    die("onset: the working directory does not exist any more\n"
        "change to a folder that exists: cd\n");
  }
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const run_first)() = before_libraries;

}  // namespace

void prepare_process() {
  // O_PATH and not /dev/null: writing to it has to fail.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/", O_PATH));
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction bus {};
  bus.sa_handler = on_bus_error;
  ::sigaction(SIGBUS, &bus, nullptr);
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
