// The program while it runs: what it prints so far, signals, and its end.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace onset::testing {

class BackgroundProgram {
 public:
  enum class Input { none, terminal };

  // Standard error is read by the test; with a terminal, all three streams are it.
  explicit BackgroundProgram(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment = {},
                             Input input = Input::none, int columns = 80);
  ~BackgroundProgram();
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  // Reads on to `text` and returns what was printed up to its end; fails the test when the program
  // ends or a minute passes first.
  std::string wait_for(const std::string& text);
  void type(const std::string& text) const;
  void signal(int number) const;
  // The exit code, or 128 + signal.
  [[nodiscard]] int wait();

 private:
  pid_t child_ = -1;
  int stream_ = -1;
  std::string printed_;
};

// Waits for the line that says where a server listens; 0 when it does not come.
[[nodiscard]] int serving_port(BackgroundProgram& program);
// One request over HTTP to a server on this machine, and the whole answer.
[[nodiscard]] std::string ask_server(int port, const std::string& path,
                                     const std::string& body = {});

}  // namespace onset::testing
