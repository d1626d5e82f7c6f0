#include "onset/train/checkpoint_folders.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "onset/base/file.h"
#include "support/support.h"

namespace onset {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TemporaryFolder;

void write_checkpoint(const fs::path& output, std::int64_t step, const std::string& content) {
  write_folder_atomically(checkpoint_path(output, step), [&](const fs::path& folder) {
    fs::create_directories(folder / "inner");
    write_file_atomically(folder / "inner" / "file", content);
  });
}

std::vector<std::int64_t> steps_in(const fs::path& output) {
  std::vector<std::int64_t> steps;
  for (const CheckpointFolder& found : list_checkpoints(output)) steps.push_back(found.step);
  return steps;
}

std::vector<std::string> names_in(const fs::path& output) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(output)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointFolders, AppearWholeAndAreListedByStep) {
  const TemporaryFolder output;
  for (const std::int64_t step : {100, 20, 3}) write_checkpoint(output.path(), step, "x");
  fs::create_directory(output.path() / "checkpoint-best");
  fs::create_directory(output.path() / "checkpoint-7-old");
  static_cast<void>(output.write("checkpoint-9", "a file"));
  EXPECT_EQ(steps_in(output.path()), (std::vector<std::int64_t>{3, 20, 100}));
  EXPECT_EQ(latest_checkpoint(output.path())->step, 100);
  EXPECT_EQ(read_file(checkpoint_path(output.path(), 20) / "inner" / "file"), "x");
  EXPECT_TRUE(list_checkpoints(output.path() / "nowhere").empty());
  EXPECT_FALSE(latest_checkpoint(output.path() / "nowhere"));
}

TEST(CheckpointFolders, OneOfTheSameNameIsReplacedAsAWhole) {
  const TemporaryFolder output;
  write_folder_atomically(checkpoint_path(output.path(), 5), [](const fs::path& folder) {
    write_file_atomically(folder / "old", "old");
  });
  write_checkpoint(output.path(), 5, "new");
  EXPECT_FALSE(fs::exists(checkpoint_path(output.path(), 5) / "old"));
  EXPECT_EQ(read_file(checkpoint_path(output.path(), 5) / "inner" / "file"), "new");
  EXPECT_EQ(names_in(output.path()), (std::vector<std::string>{"checkpoint-5"}));
}

TEST(CheckpointFolders, AFailedOneLeavesNothingAndWhatStoodStands) {
  const TemporaryFolder output;
  write_checkpoint(output.path(), 5, "good");
  const std::string message = error_of([&] {
    write_folder_atomically(checkpoint_path(output.path(), 5), [](const fs::path& folder) {
      write_file_atomically(folder / "inner", "half");
      throw resource_error("no space left");
    });
  });
  EXPECT_NE(message.find("no space left"), std::string::npos);
  EXPECT_EQ(read_file(checkpoint_path(output.path(), 5) / "inner" / "file"), "good");
  EXPECT_EQ(names_in(output.path()), (std::vector<std::string>{"checkpoint-5"}));
}

TEST(CheckpointFolders, AProcessKilledWhileWritingLeavesNoCheckpoint) {
  const TemporaryFolder output;
  write_checkpoint(output.path(), 1, "good");
  const pid_t child = ::fork();
  if (child == 0) {
    write_folder_atomically(checkpoint_path(output.path(), 2), [](const fs::path& folder) {
      write_file_atomically(folder / "half", "half");
      ::kill(::getpid(), SIGKILL);
    });
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(steps_in(output.path()), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(names_in(output.path()),
            (std::vector<std::string>{".checkpoint-2.partial", "checkpoint-1"}));
  // The next one clears up.
  write_checkpoint(output.path(), 3, "good");
  prune_checkpoints(output.path(), 5, std::nullopt);
  EXPECT_EQ(names_in(output.path()), (std::vector<std::string>{"checkpoint-1", "checkpoint-3"}));
}

TEST(CheckpointFolders, TheLatestAndTheBestAreKept) {
  const TemporaryFolder output;
  for (const std::int64_t step : {10, 20, 30, 40, 50}) write_checkpoint(output.path(), step, "x");
  const auto removed = prune_checkpoints(output.path(), 2, 20);
  EXPECT_EQ(removed.size(), 2U);
  EXPECT_EQ(steps_in(output.path()), (std::vector<std::int64_t>{20, 40, 50}));
  // Another has become the best.
  prune_checkpoints(output.path(), 2, 50);
  EXPECT_EQ(steps_in(output.path()), (std::vector<std::int64_t>{40, 50}));
  EXPECT_NE(error_of([&] { prune_checkpoints(output.path(), 0, {}); }).find("1 or more"),
            std::string::npos);
}

TEST(CheckpointFolders, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder output;
  const fs::path file = output.write("file", "");
  const std::string message =
      error_of([&] { write_folder_atomically(checkpoint_path(file, 1), [](const fs::path&) {}); });
  EXPECT_NE(message.find("checkpoint-1"), std::string::npos) << message;
  EXPECT_NE(message.find("cannot make the folder"), std::string::npos) << message;
}

}  // namespace
}  // namespace onset
