// What the system does to the program: limits, signals, folders and files that go away.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

// Runs a shell's command with "$onset" as the program; what it prints, and its exit code. Paths in
// it hold no quotes: they are a temporary folder's.
Outcome run_shell(const std::string& command) {
  const TemporaryFolder folder;
  const auto errors = (folder.path() / "error").string();
  const auto script = folder.write(
      "script", str_cat("onset='", ONSET_PROGRAM, "'\nexec 2>'", errors, "'\n", command, "\n"));
  std::FILE* pipe = ::popen(("sh " + script.string()).c_str(), "r");
  if (pipe == nullptr) throw resource_error("no shell");
  Outcome outcome;
  char buffer[4096];
  while (const auto got = std::fread(buffer, 1, sizeof buffer, pipe)) {
    outcome.out.append(buffer, got);
  }
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.error = read_file(errors);
  return outcome;
}

TEST(Process, FilesThatMayNotGrowAreAnError) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "a.safetensors").string();
  const auto outcome =
      run_shell(str_cat("ulimit -f 8\n\"$onset\" capture '", model_path("llama"),
                        "' --ids 1,2,3,4,5,6,7,8,9,10,11 --sites '*' -o '", path, "'"));
  expect_refusal(outcome, 1, "File too large");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Process, ADeletedWorkingDirectoryIsAnError) {
  const TemporaryFolder folder;
  const auto outcome = run_shell(str_cat(
      "mkdir '", folder.path().string(), "/gone'\ncd '", folder.path().string(), "/gone'\nrmdir '",
      folder.path().string(), "/gone'\n\"$onset\" inspect '", model_path("llama"), "'"));
  expect_refusal(outcome, 1, "working directory does not exist");
}

TEST(Process, LittleMemoryIsAnErrorAndNoCrash) {
  // Enough to start, too little for the 6 GB of scores of 20,000 tokens.
  std::string ids = "1";
  for (int i = 1; i < 20000; ++i) ids += ",2";
  const TemporaryFolder folder;
  const auto rows = folder.write("rows.jsonl", "{\"ids\":[" + ids + "]}\n").string();
  const auto path = (folder.path() / "a").string();
  const auto outcome = run_shell(
      str_cat("ulimit -v 2500000\n\"$onset\" capture '", model_path("llama"),
              "' --threads 1 --sites layers.0.attn_scores --jsonl '", rows, "' -o '", path, "'"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.error.find("onset: out of memory\n"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("shorter prompts"), std::string::npos) << outcome.error;
}

// Does the process handle SIGBUS yet?
bool handles_bus_error(pid_t process) {
  std::ifstream status(str_cat("/proc/", process, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    const auto mask = std::stoull(line.substr(7), nullptr, 16);
    return (mask >> (SIGBUS - 1) & 1U) != 0;
  }
  return false;
}

TEST(Process, AMappedFileThatGoesAwayIsAMessage) {
  const TemporaryFolder folder;
  const auto errors = (folder.path() / "error").string();
  // It waits for standard input, which the test holds open.
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const auto tokenizer = unpacked("tokenizers/qwen3").string();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::dup2(ends[0], 0);
    ::close(ends[1]);
    static_cast<void>(!std::freopen(errors.c_str(), "w", stderr));
    ::execl(ONSET_PROGRAM, "onset", "tokenize", tokenizer.c_str(), nullptr);
    ::_exit(99);
  }
  ::close(ends[0]);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!handles_bus_error(child) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGBUS);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[1]);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(read_file(errors),
            "onset: a model file changed or could not be read while it was mapped\n");
}

}  // namespace
}  // namespace onset::testing
