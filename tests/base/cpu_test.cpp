// ONSET_CPU lowers what the kernels are chosen by. What the process uses is fixed when it is first
// asked for, so that each value is seen in a process of its own.
#include "onset/base/cpu.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace onset::testing {
namespace {

[[noreturn]] void report(const char* value) {
  ::setenv("ONSET_CPU", value, 1);
  try {
    std::_Exit(static_cast<int>(best_cpu_level()) + (cpu_has_bf16() ? 10 : 0));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(100);
  }
}

// Not asked in the process that reports: it would know the answer already.
struct ExitsWithLevel {
  CpuLevel most;
  bool operator()(int status) const {
    return WIFEXITED(status) &&
           WEXITSTATUS(status) == static_cast<int>(std::min(most, best_cpu_level()));
  }
};

TEST(CpuDeathTest, TheEnvironmentLowersTheLevel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(report("baseline"), ExitsWithLevel{CpuLevel::baseline}, "");
  EXPECT_EXIT(report("avx2"), ExitsWithLevel{CpuLevel::avx2}, "");
  EXPECT_EXIT(report("avx512"), ExitsWithLevel{CpuLevel::avx512}, "");
  EXPECT_EXIT(report("avx3"), ::testing::ExitedWithCode(100), "ONSET_CPU is \"avx3\"");
}

}  // namespace
}  // namespace onset::testing
