// Reading lines and showing answers, on a terminal or through pipes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat_session.h"
#include "output.h"

namespace onset::app {

// While it lives, Ctrl-C sets a flag in place of ending the process.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  // Whether Ctrl-C was pressed since the last call.
  [[nodiscard]] bool take();
  [[nodiscard]] bool is_set() const;
};

class ChatTerminal {
 public:
  explicit ChatTerminal(bool quiet);

  // What the user says next: a line, joined with those after it while they end in a backslash.
  // False at the end. On a terminal Ctrl-C begins the line anew.
  [[nodiscard]] bool read(std::string& said);
  // A reply to a command, an error, a remark: on standard error, where the answers are on their
  // own.
  void remark(std::string_view text);

  // The answers as they come: the first at once, the second behind it. On a wide terminal two are
  // shown in columns when they are complete.
  void begin(bool both);
  void show(std::size_t answer, std::string_view text);
  void end(const std::vector<ChatAnswer>& answers, double seconds);

  [[nodiscard]] bool stopped() const { return interrupt_ && interrupt_->is_set(); }

 private:
  void write(std::string_view text);
  [[nodiscard]] std::size_t columns() const;
  void show_progress();
  void show_columns(const std::vector<ChatAnswer>& answers);

  bool quiet_;
  bool input_is_terminal_;
  bool output_is_terminal_;
  std::optional<InterruptFlag> interrupt_;  // where somebody sits who may press Ctrl-C
  ResultWriter out_;
  std::string pending_;  // read and not handed out
  bool both_ = false;
  bool in_columns_ = false;
  std::size_t shown_tokens_ = 0;
  std::chrono::steady_clock::time_point next_progress_;
  std::string second_;  // what the second answer says while the first is shown
};

}  // namespace onset::app
