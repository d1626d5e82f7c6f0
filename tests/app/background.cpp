#include "app/background.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "onset/base/error.h"

namespace onset::testing {
namespace {

[[noreturn]] void become_program(std::vector<std::string> arguments,
                                 std::vector<std::string> environment) {
  arguments.insert(arguments.begin(), ONSET_PROGRAM);
  environment.insert(environment.end(), {"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin",
                                         "OMP_WAIT_POLICY=passive", "TERM=xterm"});
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> envp;
  envp.reserve(environment.size() + 1);
  for (auto& entry : environment) envp.push_back(entry.data());
  envp.push_back(nullptr);
  ::execve(ONSET_PROGRAM, argv.data(), envp.data());
  ::_exit(127);
}

}  // namespace

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& environment, Input input,
                                     int columns) {
  if (input == Input::terminal) {
    winsize size{};
    size.ws_row = 40;
    size.ws_col = static_cast<unsigned short>(columns);
    child_ = ::forkpty(&stream_, nullptr, nullptr, &size);
    if (child_ == 0) become_program(arguments, environment);
    return;
  }
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw resource_error("no pipe");
  child_ = ::fork();
  if (child_ == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    become_program(arguments, environment);
  }
  ::close(ends[1]);
  stream_ = ends[0];
}

BackgroundProgram::~BackgroundProgram() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(stream_);
}

std::string BackgroundProgram::wait_for(const std::string& text) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::array<char, 4096> buffer{};
  while (printed_.find(text) == std::string::npos) {
    pollfd entry{stream_, POLLIN, 0};
    const bool late = std::chrono::steady_clock::now() > until;
    if (!late && ::poll(&entry, 1, 1000) == 0) continue;
    const auto count = late ? 0 : ::read(stream_, buffer.data(), buffer.size());
    if (count <= 0) {
      ADD_FAILURE() << "no " << text << " in: " << printed_;
      break;
    }
    printed_.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const auto at = printed_.find(text);
  const auto end = at == std::string::npos ? printed_.size() : at + text.size();
  std::string given = printed_.substr(0, end);
  printed_.erase(0, end);
  return given;
}

void BackgroundProgram::type(const std::string& text) const {
  EXPECT_EQ(::write(stream_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void BackgroundProgram::signal(int number) const { ::kill(child_, number); }

int BackgroundProgram::wait() {
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int serving_port(BackgroundProgram& program) {
  program.wait_for("listening on http://127.0.0.1:");
  return std::atoi(program.wait_for("\n").c_str());
}

std::string ask_server(int port, const std::string& path, const std::string& body) {
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const auto request =
        str_cat(body.empty() ? "GET " : "POST ", path, " HTTP/1.1\r\nHost: localhost\r\n",
                "Content-Length: ", body.size(), "\r\nConnection: close\r\n\r\n", body);
    EXPECT_EQ(::send(connection, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = ::recv(connection, buffer.data(), buffer.size(), 0)) > 0;) {
      answer.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }
  ::close(connection);
  return answer;
}

}  // namespace onset::testing
