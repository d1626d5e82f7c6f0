// RoPE frequencies against hand-computed values (CASES.md rows 9 and 10).
#include "onset/model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace onset {
namespace {

// Row 9: head size 8, theta 5e5, factor 8, bands 1 and 4, original context 8192.
TEST(RopeFrequencies, Llama3BandsKeepStretchAndInterpolate) {
  const RopeFrequencies rope = rope_frequencies({.kind = RopeKind::llama3,
                                                 .theta = 5e5,
                                                 .rotary_dim = 8,
                                                 .factor = 8.0,
                                                 .low_freq_factor = 1.0,
                                                 .high_freq_factor = 4.0,
                                                 .original_context = 8192});
  ASSERT_EQ(rope.inverse.size(), 4U);
  // Plain: 1, 5e5^-0.25 = 0.0376060, 5e5^-0.5 = 1.41421e-3, 5e5^-0.75 = 5.31830e-5.
  // Wavelengths 6.28, 167.1, 4442.9, 118143; band limits 8192/4 = 2048 and 8192/1 = 8192.
  EXPECT_NEAR(rope.inverse[0], 1.0, 1e-7);
  EXPECT_NEAR(rope.inverse[1], 0.0376060309, 1e-8);
  // The third is between: smooth = (8192 / 4442.88 - 1) / 3 = 0.2812832,
  // (1 - 0.2812832) * 1.41421e-3 / 8 + 0.2812832 * 1.41421e-3 = 5.248464e-4.
  const double smooth = (8192.0 / (2 * std::numbers::pi / std::pow(5e5, -0.5)) - 1.0) / 3.0;
  EXPECT_NEAR(smooth, 0.2812832, 1e-5);
  EXPECT_NEAR(rope.inverse[2], 5.248464e-4, 1e-9);
  EXPECT_NEAR(rope.inverse[3], 5.31829589e-5 / 8.0, 1e-11);
  EXPECT_EQ(rope.scale, 1.0);
}

TEST(RopeFrequencies, LinearDividesEveryFrequency) {
  const RopeFrequencies rope =
      rope_frequencies({.kind = RopeKind::linear, .theta = 1e4, .rotary_dim = 4, .factor = 4.0});
  ASSERT_EQ(rope.inverse.size(), 2U);
  EXPECT_NEAR(rope.inverse[0], 0.25, 1e-8);
  EXPECT_NEAR(rope.inverse[1], 0.0025, 1e-9);
}

// Row 10: factor 4 scales cos and sin by 0.1 ln 4 + 1.
TEST(RopeFrequencies, YarnScalesAndStretchesSlowDims) {
  const RopeFrequencies rope = rope_frequencies({.kind = RopeKind::yarn,
                                                 .theta = 1e4,
                                                 .rotary_dim = 16,
                                                 .factor = 4.0,
                                                 .original_context = 16});
  EXPECT_NEAR(rope.scale, 1.1386, 1e-4);
  // With 16 positions no dim turns 32 times (low limit below 0, taken as 0); one turn is at dim
  // 16 ln(16 / 2 pi) / (2 ln 1e4) = 0.81, rounded up to 1: dim 0 keeps its frequency, all others
  // are stretched by 4.
  EXPECT_NEAR(rope.inverse[0], 1.0, 1e-7);
  for (std::size_t i = 1; i < rope.inverse.size(); ++i) {
    EXPECT_NEAR(rope.inverse[i], std::pow(1e4, -static_cast<double>(i) / 8.0) / 4.0, 1e-8) << i;
  }
}

}  // namespace
}  // namespace onset
