#include "onset/train/sft_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "finite_differences.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset {
namespace {

using testing::autograd_of;
using testing::doubles;

// Row 26 of CASES: micro-batches of 1 and 9 tokens give the loss and gradient of one batch of 10.
TEST(SftLoss, MicroBatchesOfUnevenSizeAddUpToTheWholeBatch) {
  const at::Tensor logps = doubles({-3, -.5, -1, -.25, -2, -.75, -1.5, -.1, -.2, -4});
  const at::Tensor whole = sft_loss(logps, 10);
  EXPECT_NEAR(whole.item<double>(), 13.3 / 10, 1e-12);
  const at::Tensor parts =
      sft_loss(logps.narrow(0, 0, 1), 10) + sft_loss(logps.narrow(0, 1, 9), 10);
  EXPECT_NEAR(parts.item<double>(), whole.item<double>(), 1e-12);

  const at::Tensor gradient = autograd_of(
      [](const at::Tensor& x) {
        return sft_loss(x.narrow(0, 0, 1), 10) + sft_loss(x.narrow(0, 1, 9), 10);
      },
      logps);
  EXPECT_TRUE(testing::close(gradient, at::full({10}, -0.1, at::kDouble), {.atol = 1e-15}));
}

TEST(SftLoss, AMicroBatchWithNothingToTrainContributesNothing) {
  const at::Tensor gradient = autograd_of(
      [](const at::Tensor& x) { return sft_loss(x.narrow(0, 0, 0), 4); }, doubles({-1}));
  EXPECT_EQ(gradient.item<double>(), 0);
}

TEST(SftLoss, AWindowThatCannotHoldTheMicroBatchIsRefused) {
  EXPECT_NE(testing::error_of([] {
              return sft_loss(doubles({-1, -2}), 1);
            }).find("cannot hold"),
            std::string::npos);
  EXPECT_NE(testing::error_of([] { return sft_loss(doubles({}), 0); }).find("trained tokens"),
            std::string::npos);
}

}  // namespace
}  // namespace onset
