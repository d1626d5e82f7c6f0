#include "onset/base/command.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;
using testing::TemporaryFolder;

constexpr double patience = 60;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Command, GetsItsInputAndGivesItsOutput) {
  EXPECT_EQ(run_command("tr a-z A-Z", "some text\n", patience), "SOME TEXT\n");
  EXPECT_EQ(run_command("true", "", patience), "");
}

TEST(Command, MoreThanPipesHoldGoesThroughBothWays) {
  const std::string megabytes(std::size_t{3} << 20U, 'x');
  EXPECT_EQ(run_command("cat", megabytes, patience), megabytes);
}

TEST(Command, OneThatDoesNotReadItsInputIsHeard) {
  const std::string megabytes(std::size_t{3} << 20U, 'x');
  EXPECT_EQ(run_command("echo done", megabytes, patience), "done\n");
}

TEST(Command, FailuresNameIt) {
  const auto fault = [](const std::string& command) {
    return error_of([&] { (void)run_command(command, "", patience); });
  };
  EXPECT_TRUE(contains(fault("exit 3"), "\"exit 3\" ended with exit code 3"));
  EXPECT_TRUE(contains(fault("kill -9 $$"), "was ended by signal 9"));
  EXPECT_TRUE(contains(fault("/nowhere/at-all 2>/dev/null"), "exit code 127"));
}

TEST(Command, OneThatHangsIsEndedWithItsChildren) {
  const TemporaryFolder folder;
  const auto survived = folder.path() / "survived";
  const auto begin = std::chrono::steady_clock::now();
  const std::string error = error_of(
      [&] { (void)run_command("(sleep 2; touch " + survived.string() + ") & sleep 30", "", 0.2); });
  EXPECT_TRUE(contains(error, "took longer than 0.2 s")) << error;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_FALSE(std::filesystem::exists(survived));
}

TEST(Command, OneThatClosesItsOutputAndHangsIsEndedToo) {
  const std::string error = error_of([] { (void)run_command("exec >&-; sleep 30", "", 0.2); });
  EXPECT_TRUE(contains(error, "took longer than 0.2 s")) << error;
}

}  // namespace
}  // namespace onset
