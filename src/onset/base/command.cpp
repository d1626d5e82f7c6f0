#include "onset/base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>

#include "onset/base/error.h"
#include "onset/base/strings.h"

// NOLINTNEXTLINE(readability-redundant-declaration): not every unistd.h has it
extern char** environ;

namespace onset {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_output = std::size_t{1} << 26U;

Error failure(const std::string& command, const std::string& what, std::string hint = {}) {
  return input_error(str_cat("the command ", quote(command), " ", what), std::move(hint));
}

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void reset(int value) {
    close();
    value_ = value;
  }
  void close() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }
  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] bool is_open() const { return value_ >= 0; }

 private:
  int value_;
};

// Writing to a program that has ended is an errno in this thread, not the end of this process.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// A started command; its group is killed when this ends.
class Child {
 public:
  Child(std::string command, const sigset_t& mask) : command_(std::move(command)) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0) throw not_started(errno);
    Descriptor child_input(in[0]);
    input_.reset(in[1]);
    if (::pipe2(out.data(), O_CLOEXEC) != 0) throw not_started(errno);
    output_.reset(out[0]);
    const Descriptor child_output(out[1]);
    spawn(child_input.get(), child_output.get(), mask);
    ::fcntl(input_.get(), F_SETFL, O_NONBLOCK);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(-process_, SIGKILL);
    if (!status_) ::waitpid(process_, nullptr, 0);
  }

  // Waits until something can be written or read, and does it. False when the output has ended.
  bool exchange(std::string_view& input, std::string& output, Clock::time_point deadline) {
    std::array<pollfd, 2> ends{pollfd{output_.get(), POLLIN, 0}, pollfd{input_.get(), POLLOUT, 0}};
    if (input_.is_open() && input.empty()) input_.close();
    const nfds_t count = input_.is_open() ? 2 : 1;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    constexpr std::int64_t longest = 1000;
    const int ready = ::poll(ends.data(), count,
                             static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, longest)));
    if (ready < 0 && errno != EINTR) throw failure(command_, std::strerror(errno));
    if (ready <= 0) return true;
    if (count == 2 && ends[1].revents != 0) write(input);
    return ends[0].revents == 0 || read(output);
  }

  [[nodiscard]] std::optional<int> status() {
    int status = 0;
    if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
    return status_;
  }

 private:
  [[nodiscard]] Error not_started(int code) const {
    return failure(command_, str_cat("cannot be started: ", std::strerror(code)));
  }

  void spawn(int input, int output, const sigset_t& mask) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string shell = "/bin/sh";
    std::string option = "-c";
    std::string text = command_;
    std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
    const int code =
        ::posix_spawn(&process_, shell.c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0) throw not_started(code);
  }

  void write(std::string_view& input) {
    const ssize_t written = ::write(input_.get(), input.data(), input.size());
    if (written >= 0) {
      input.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EAGAIN && errno != EINTR) {
      input_.close();  // nobody reads any more
    }
  }

  bool read(std::string& output) {
    constexpr std::size_t chunk = std::size_t{1} << 16U;
    std::array<char, chunk> buffer{};
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got < 0) return errno == EINTR;
    output.append(buffer.data(), static_cast<std::size_t>(got));
    if (output.size() > max_output) throw failure(command_, "prints more than 64 MiB");
    return got > 0;
  }

  std::string command_;
  pid_t process_ = -1;
  Descriptor input_;
  Descriptor output_;
  std::optional<int> status_;
};

void require_success(const std::string& command, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw failure(command, WIFSIGNALED(status)
                             ? str_cat("was ended by signal ", WTERMSIG(status))
                             : str_cat("ended with exit code ", WEXITSTATUS(status)));
}

}  // namespace

std::string run_command(const std::string& command, std::string_view input, double seconds) {
  const NoBrokenPipe no_broken_pipe;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  const auto require_time = [&] {
    if (Clock::now() < deadline) return;
    throw failure(command, str_cat("took longer than ", seconds, " s"),
                  "allow it more time, or find out why it hangs");
  };
  Child child(command, no_broken_pipe.before());
  std::string output;
  while (child.exchange(input, output, deadline)) require_time();
  while (!child.status()) {
    require_time();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  require_success(command, child.status().value());
  return output;
}

}  // namespace onset
