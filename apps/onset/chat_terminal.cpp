#include "chat_terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr std::size_t least_for_columns = 100;

std::atomic<bool> interrupted = false;

extern "C" void on_interrupt(int /*signal*/) { interrupted = true; }

// Text as a terminal may be given it: a model's escape sequences would move the cursor or worse.
std::string harmless(std::string_view text, bool is_terminal) {
  if (!is_terminal) return std::string(text);
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t line = std::min(text.find_first_of("\n\t", at), text.size());
    result += printable(text.substr(at, line - at), utf8_locale());
    if (line < text.size()) result += text[line];
    at = line + 1;
  }
  return result;
}

// Waits a moment.
bool input_is_there() {
  pollfd entry{STDIN_FILENO, POLLIN, 0};
  return ::poll(&entry, 1, 100) > 0;
}

const char* title(bool masked) { return masked ? "masked" : "unmasked"; }

std::string remarks_on(const ChatAnswer& answer) {
  if (answer.finish == FinishReason::cancelled) return "stopped";
  if (answer.finish != FinishReason::length) return "";
  return answer.context_full ? "cut: the context is full; /reset begins a new conversation"
                             : str_cat("cut after ", counted(answer.tokens, "token"),
                                       ", the limit of --max-tokens");
}

}  // namespace

InterruptFlag::InterruptFlag() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptFlag::~InterruptFlag() { std::signal(SIGINT, SIG_DFL); }

bool InterruptFlag::take() { return interrupted.exchange(false); }

bool InterruptFlag::is_set() const { return interrupted.load(); }

ChatTerminal::ChatTerminal(bool quiet)
    : quiet_(quiet),
      input_is_terminal_(::isatty(STDIN_FILENO) == 1),
      output_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      out_("") {
  if (input_is_terminal_) interrupt_.emplace();
}

void ChatTerminal::write(std::string_view text) {
  out_.write(text);
  out_.flush();
}

void ChatTerminal::remark(std::string_view text) {
  if (text.empty()) return;
  write_error_text(str_cat(text, "\n"));
}

bool ChatTerminal::read(std::string& said) {
  said.clear();
  if (input_is_terminal_) write_error_text("\n> ");
  std::array<char, 4096> buffer{};
  for (;;) {
    const std::size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      if (!line.ends_with('\\')) {
        said += line;
        return true;
      }
      line.back() = '\n';
      said += line;
      if (input_is_terminal_) write_error_text("… ");
      continue;
    }
    if (interrupt_ && interrupt_->take()) {
      said.clear();
      pending_.clear();
      write_error_text("\n(Ctrl-D or /quit ends the chat)\n> ");
    }
    // A read alone would miss a Ctrl-C that comes just before it.
    if (interrupt_ && !input_is_there()) continue;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count > 0) {
      pending_.append(buffer.data(), static_cast<std::size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw input_error("standard input cannot be read");
    // A last line without its line break.
    if (input_is_terminal_) write_error_text("\n");
    said += pending_;
    pending_.clear();
    return !said.empty();
  }
}

std::size_t ChatTerminal::columns() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

void ChatTerminal::begin(bool both) {
  if (interrupt_) static_cast<void>(interrupt_->take());
  both_ = both;
  in_columns_ = both && output_is_terminal_ && columns() >= least_for_columns;
  shown_tokens_ = 0;
  second_.clear();
  if (both && !in_columns_) write(str_cat("[", title(false), "]\n"));
}

void ChatTerminal::show_progress() {
  using Clock = std::chrono::steady_clock;
  ++shown_tokens_;
  if (quiet_ || Clock::now() < next_progress_) return;
  next_progress_ = Clock::now() + std::chrono::milliseconds(200);
  write_error_text(str_cat("\r\033[Kanswering twice: ", counted(shown_tokens_, "word"), " so far"));
}

void ChatTerminal::show(std::size_t answer, std::string_view text) {
  if (in_columns_) {
    show_progress();
    return;
  }
  if (answer == 0) {
    write(harmless(text, output_is_terminal_));
  } else {
    second_ += text;
  }
}

void ChatTerminal::end(const std::vector<ChatAnswer>& answers, double seconds) {
  if (in_columns_) {
    if (!quiet_) write_error_text("\r\033[K");
    show_columns(answers);
  } else {
    write("\n");
    if (both_) {
      write(str_cat("[", title(true), "]\n", harmless(second_, output_is_terminal_), "\n"));
    }
  }
  std::int64_t tokens = 0;
  for (const auto& answer : answers) {
    tokens += answer.tokens;
    const auto said = remarks_on(answer);
    if (said.empty()) continue;
    remark(both_ ? str_cat("(", title(answer.masked), ": ", said, ")") : str_cat("(", said, ")"));
  }
  if (output_is_terminal_ && !quiet_ && tokens > 0 && seconds > 0) {
    remark(str_cat("(", counted(tokens, "token"), ", ",
                   compact(static_cast<double>(tokens) / seconds), " a second)"));
  }
}

void ChatTerminal::show_columns(const std::vector<ChatAnswer>& answers) {
  const bool utf8 = utf8_locale();
  const std::size_t width = (columns() - 3) / 2;
  const auto lines_of = [&](const ChatAnswer& answer) {
    std::vector<std::string> lines{str_cat(title(answer.masked), answer.kept ? ", kept" : ""),
                                   std::string(14, '-')};
    for (const auto& line : split(harmless(answer.text, true), '\n')) {
      for (const auto& part : split(wrap(line, width, 0), '\n')) {
        lines.push_back(fit(part, width, utf8));
      }
    }
    return lines;
  };
  const auto left = lines_of(answers[0]);
  const auto right = lines_of(answers[1]);
  std::string text;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    text += pad_right(i < left.size() ? left[i] : "", width) + " | " +
            (i < right.size() ? right[i] : "") + "\n";
  }
  write(text);
}

}  // namespace onset::app
