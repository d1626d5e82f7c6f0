#include "app/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "onset/base/error.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

// Null-terminated pointers into the strings, as posix_spawn wants them.
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (auto& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_of(const Surroundings& surroundings) {
  std::vector<std::string> result{"LC_ALL=" + surroundings.locale, "PATH=/usr/bin:/bin"};
  result.insert(result.end(), surroundings.environment.begin(), surroundings.environment.end());
  return result;
}

}  // namespace

OrderedJson Outcome::json() const {
  auto value = OrderedJson::parse(out, nullptr, false);
  EXPECT_FALSE(value.is_discarded()) << "not JSON: " << out << error;
  return value.is_discarded() ? OrderedJson::object() : value;
}

std::vector<OrderedJson> Outcome::json_lines() const {
  std::vector<OrderedJson> rows;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) rows.push_back(OrderedJson::parse(line));
  return rows;
}

Outcome run_onset(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  const TemporaryFolder folder;
  const auto given = folder.write("in", surroundings.input).string();
  const auto input = surroundings.input_path.empty() ? given : surroundings.input_path;
  const auto caught = (folder.path() / "out").string();
  const auto errors = (folder.path() / "error").string();
  const auto output = surroundings.output.empty() ? caught : surroundings.output;

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT, 0600);
  std::array<int, 2> ends{-1, -1};
  if (surroundings.reader_left) {
    if (::pipe(ends.data()) != 0) throw resource_error("no pipe");
    ::close(ends[0]);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  } else if (surroundings.output_closed) {
    posix_spawn_file_actions_addclose(&actions, 1);
  } else {
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
  }

  std::vector<std::string> command{ONSET_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto environment = environment_of(surroundings);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, ONSET_PROGRAM, &actions, nullptr,
                                   pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (ends[1] >= 0) ::close(ends[1]);
  if (failed != 0) throw resource_error("the program does not start");
  int status = 0;
  ::waitpid(child, &status, 0);

  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (std::filesystem::exists(caught)) outcome.out = read_file(caught);
  outcome.error = read_file(errors);
  return outcome;
}

void expect_refusal(const Outcome& outcome, int code, const std::string& message_part) {
  EXPECT_EQ(outcome.code, code) << outcome.error;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.error.starts_with("onset: ")) << outcome.error;
  EXPECT_NE(outcome.error.find(message_part), std::string::npos)
      << "expected: " << message_part << "\nfound: " << outcome.error;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // One column for every byte that begins a character: true of what these tests print.
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    });
    widest = std::max(widest, static_cast<std::size_t>(columns));
  }
  return widest;
}

std::string model_path(const std::string& name) { return testing::data("models/" + name).string(); }

}  // namespace onset::testing
