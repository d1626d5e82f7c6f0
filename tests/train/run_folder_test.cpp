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

}  // namespace
}  // namespace onset::testing
