// The hint for someone who asks for the end of a run that has not ended.
#include "onset/checkpoint/run_checkpoints.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace onset::testing {
namespace {

namespace fs = std::filesystem;

TEST(RunCheckpoints, AnUnfinishedRunHasItsLatestNamed) {
  const TemporaryFolder run;
  EXPECT_EQ(unfinished_run_hint(run.path() / "final"), "");
  fs::create_directory(run.path() / "checkpoint-9");
  fs::create_directory(run.path() / "checkpoint-10");
  const std::string latest = "its latest checkpoint is " + (run.path() / "checkpoint-10").string();
  for (const fs::path& asked : {run.path() / "final", run.path() / "final/"}) {
    EXPECT_NE(unfinished_run_hint(asked).find(latest + ","), std::string::npos)
        << unfinished_run_hint(asked);
  }
  EXPECT_EQ(unfinished_run_hint(run.path() / "fnal"), "");
  fs::create_directory(run.path() / "final");
  EXPECT_EQ(unfinished_run_hint(run.path() / "final"), "");
}

}  // namespace
}  // namespace onset::testing
