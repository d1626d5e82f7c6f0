#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr std::size_t buffer_bytes = 1U << 16U;
constexpr auto progress_interval = std::chrono::milliseconds(100);
constexpr auto progress_line_interval = std::chrono::seconds(60);

// One level of indentation at a time, with short arrays and objects of numbers on one line: a
// layer's entries are rows to the eye as well.
void dump(const OrderedJson& value, std::size_t indent, std::string& out) {
  const auto compact_text = [](const OrderedJson& part) {
    return part.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  };
  if (!value.is_structured() || value.empty()) {
    out += compact_text(value);
    return;
  }
  bool nested = false;
  for (const auto& part : value) nested = nested || (part.is_structured() && !part.empty());
  if (!nested) {
    const std::string line = compact_text(value);
    if (value.is_array() || line.size() <= 120) {
      out += line;
      return;
    }
  }
  const bool object = value.is_object();
  out += object ? '{' : '[';
  bool first = true;
  for (const auto& [key, part] : value.items()) {
    out.append(first ? "\n" : ",\n").append(indent + 1, ' ');
    first = false;
    if (object) out.append(compact_text(OrderedJson(key))).append(": ");
    dump(part, indent + 1, out);
  }
  out.append("\n").append(indent, ' ') += object ? '}' : ']';
}

}  // namespace

ResultWriter::ResultWriter(const std::string& path) : name_("standard output") {
  if (path.empty() || path == "-") {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  if (!is_special_file(path)) {
    file_ = std::make_unique<AtomicFile>(path);
    return;
  }
  name_ = printable(path, true);
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor_ < 0) {
    throw resource_error(str_cat(name_, ": cannot write: ", std::strerror(errno)));
  }
}

ResultWriter::~ResultWriter() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

void ResultWriter::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffer_bytes) flush();
}

void ResultWriter::flush() {
  if (file_) {
    file_->write(buffer_);
  } else if (const int error = write_all(descriptor_, buffer_); error == EPIPE) {
    throw resource_error(name_ + ": its reader left before everything was written");
  } else if (error == EBADF) {
    throw resource_error(name_ + " is closed", "give a file with -o FILE");
  } else if (error != 0) {
    throw resource_error(str_cat(name_, ": cannot write: ", std::strerror(error)));
  }
  buffer_.clear();
}

void ResultWriter::finish() {
  flush();
  if (file_) file_->commit();
}

OutputFolder::OutputFolder(const std::filesystem::path& path) {
  if (path.empty()) return;
  std::error_code error;
  for (auto at = path.lexically_normal();
       !at.empty() && at != at.root_path() && !std::filesystem::exists(at, error);
       at = at.parent_path()) {
    made_.push_back(at);
  }
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    throw resource_error(str_cat("-o ", quote(path.string()),
                                 " is no folder, and none can be made there",
                                 error ? ": " + error.message() : std::string()));
  }
}

OutputFolder::~OutputFolder() {
  std::error_code error;
  for (const auto& path : made_) {
    // Removes empty folders alone.
    if (!std::filesystem::remove(path, error)) break;
  }
}

Console::Console(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {
  // Work that ends before the first update shows no progress at all.
  next_update_ = std::chrono::steady_clock::now();
  next_update_ += terminal_ ? 3 * progress_interval : progress_line_interval;
}

Console::~Console() { erase(); }

Log Console::log() {
  return {.warn = [this](const std::string& message) { warn(message); },
          .progress = [this](const std::string& what, std::int64_t done,
                             std::int64_t total) { progress(what, done, total); }};
}

void Console::warn(const std::string& message) {
  erase();
  write_error_text("onset: warning: " + message_text(message) + "\n");
}

void Console::note(const std::string& message) {
  if (quiet_) return;
  erase();
  write_error_text("onset: " + message_text(message) + "\n");
}

void Console::progress(const std::string& what, std::int64_t done, std::int64_t total) {
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_update_) return;
  const std::string line =
      total > 0 ? str_cat(what, " ", done, "/", total) : str_cat(what, " ", done);
  if (!terminal_) {
    next_update_ = now + progress_line_interval;
    note(line);
    return;
  }
  next_update_ = now + progress_interval;
  write_error_text("\r\x1b[K" + fit(printable(line, utf8_locale()), 79, utf8_locale()));
  line_shown_ = true;
}

void Console::erase() {
  if (line_shown_) write_error_text("\r\x1b[K");
  line_shown_ = false;
}

bool is_special_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

bool StandardInput::read_more() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t had = buffer_.size();
  buffer_.resize(had + buffer_bytes);
  ssize_t got = -1;
  do {
    got = ::read(STDIN_FILENO, buffer_.data() + had, buffer_bytes);
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) {
    throw input_error(str_cat("standard input: cannot read: ",
                              error == EBADF ? "it is closed" : std::strerror(error)));
  }
  return got > 0;
}

bool StandardInput::next_line(std::string& line) {
  std::size_t searched = begin_;
  while (true) {
    const auto end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line.assign(buffer_, begin_, end - begin_);
      begin_ = end + 1;
      return true;
    }
    const std::size_t pending = buffer_.size() - begin_;
    if (read_more()) {
      searched = pending;  // reading moved what was pending to the front
      continue;
    }
    line = std::exchange(buffer_, {});
    return pending > 0;
  }
}

std::string StandardInput::rest() {
  while (read_more()) {
  }
  return std::exchange(buffer_, {});
}

bool colour_wanted(const std::string& output_path) {
  if (!output_path.empty() && output_path != "-") return false;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::string json_document(const OrderedJson& value) {
  std::string out;
  dump(value, 0, out);
  out += '\n';
  return out;
}

int print_help(const CommandLine& line) {
  ResultWriter writer("");
  writer.write(line.help());
  writer.finish();
  return 0;
}

void write_error_text(std::string_view text) {
  // Where standard error cannot be written there is nobody left to tell.
  static_cast<void>(write_all(STDERR_FILENO, text));
}

}  // namespace onset::app
