// Where results and messages go: results to standard output or to a file that appears whole,
// progress and warnings to standard error.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/base/log.h"

namespace onset::app {

// A result, buffered. Nothing counts as written before finish(); a full disk, a reader that left or
// a closed standard output is a resource error there or earlier.
class ResultWriter {
 public:
  // `path`: a file, written atomically and opened at once so that a wrong path fails before the
  // work; empty or "-" is standard output. Pipes and devices (/dev/stdout, /dev/null) are written
  // to as they are: renaming a file over them would replace them.
  explicit ResultWriter(const std::string& path);
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;
  ~ResultWriter();

  void write(std::string_view text);
  // Hands on what was written so far; a file still appears with finish() alone.
  void flush();
  void finish();

 private:
  std::string name_;  // for messages
  std::unique_ptr<AtomicFile> file_;
  int descriptor_ = -1;  // where there is no file_
  std::string buffer_;
};

// The folder that -o names, or one in it: made at once, so that a wrong path fails before the work.
// Folders that it made and that nothing was put into go again with it, so that a run that failed
// leaves none.
class OutputFolder {
 public:
  // An empty path is no folder. A resource error where it cannot be made.
  explicit OutputFolder(const std::filesystem::path& path);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

 private:
  std::vector<std::filesystem::path> made_;  // the innermost first
};

// Standard error: warnings as lines, progress on a terminal as one line that is erased again, into
// a file or pipe as a line a minute: the log of a long job shows where it is, that of a short one
// stays empty. Quiet leaves out progress and notes and keeps warnings.
class Console {
 public:
  explicit Console(bool quiet);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  // Valid as long as the console.
  [[nodiscard]] Log log();
  void warn(const std::string& message);
  // What was done beside the result, such as a file written; nothing where quiet.
  void note(const std::string& message);
  void progress(const std::string& what, std::int64_t done, std::int64_t total);
  void erase();

 private:
  bool quiet_;
  bool terminal_;
  bool line_shown_ = false;
  std::chrono::steady_clock::time_point next_update_;
};

// Does the path name something that is there and neither a file nor a folder: a pipe, a device?
[[nodiscard]] bool is_special_file(const std::string& path);

// May results on standard output carry colour? Only on a terminal, and not with NO_COLOR.
[[nodiscard]] bool colour_wanted(const std::string& output_path);

// Standard input in parts. Input errors where it cannot be read.
class StandardInput {
 public:
  // The next line without its line break; false at the end.
  [[nodiscard]] bool next_line(std::string& line);
  // All that is left.
  [[nodiscard]] std::string rest();

 private:
  [[nodiscard]] bool read_more();

  std::string buffer_;
  std::size_t begin_ = 0;  // of what is not handed out yet
};

// JSON as the program prints it: indented, bad UTF-8 replaced, a newline at the end.
[[nodiscard]] std::string json_document(const OrderedJson& value);

// The help of a verb on standard output; the exit code.
[[nodiscard]] int print_help(const CommandLine& line);

void write_error_text(std::string_view text);

}  // namespace onset::app
