#include "onset/base/processor_share.h"

#include <gtest/gtest.h>

#include <thread>

namespace onset::testing {
namespace {

TEST(ProcessorShare, OfWorkThatSleepsIsShort) {
  ProcessorShare share(1);
  for (int i = 0; i < 3; ++i) {
    share.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    share.end();
    EXPECT_EQ(share.is_short(), i == 2) << "a quarter of a second is needed";
  }
  EXPECT_FALSE(share.is_short()) << "a new look begins";
}

TEST(ProcessorShare, TimeBetweenStretchesDoesNotCount) {
  ProcessorShare share(1);
  share.begin();
  share.end();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_FALSE(share.is_short());
}

}  // namespace
}  // namespace onset::testing
