// Where a run may write, and what it goes on from.
#include "onset/train/run_folder.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace onset::testing {
namespace {

TEST(RunFolder, AFileInItsWayIsNamed) {
  const TemporaryFolder folder;
  const auto file = folder.write("file", "");
  EXPECT_NE(error_of([&] { require_folder(file); }).find("file: is a file"), std::string::npos);
  const std::string message = error_of([&] { require_folder(file / "runs/first"); });
  EXPECT_NE(message.find("file/runs/first: cannot be made: " + file.string() + " is a file"),
            std::string::npos)
      << message;
  EXPECT_NO_THROW(require_folder(folder.path()));
  EXPECT_NO_THROW(require_folder(folder.path() / "runs/first"));
  EXPECT_NO_THROW(require_folder("a-folder-that-is-not-there"));
}

TEST(RunFolder, ARunThatMadeNoUpdateIsNoneToKeep) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(refuse_another_run(folder.path()));
  static_cast<void>(folder.write("settings.toml", "seed = 1\n"));
  static_cast<void>(folder.write("metrics.jsonl", ""));
  EXPECT_NO_THROW(refuse_another_run(folder.path()));
  std::filesystem::create_directory(folder.path() / "final");
  EXPECT_NE(error_of([&] { refuse_another_run(folder.path()); }).find("holds another run"),
            std::string::npos);
  std::filesystem::remove(folder.path() / "final");
  static_cast<void>(folder.write("metrics.jsonl", "{\"step\": 1}\n"));
  EXPECT_NE(error_of([&] { refuse_another_run(folder.path()); }).find("holds another run"),
            std::string::npos);
}

}  // namespace
}  // namespace onset::testing
