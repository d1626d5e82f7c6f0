#include "onset/wemask/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace onset {
namespace {

using Dims = std::vector<std::int64_t>;

TEST(MaskSelection, TakesTheLargestMagnitudesInOrderTheLowerIndexFirstOnTies) {
  const std::vector<float> values{0.5F, -2.0F, 2.0F, 0.0F, -0.5F, 3.0F};
  EXPECT_EQ(largest_dims(values, 4), (Dims{5, 1, 2, 0}));
  EXPECT_EQ(smallest_dims(values, 3), (Dims{3, 0, 4}));
  EXPECT_EQ(largest_dims(values, 6).size(), 6U);
}

TEST(MaskSelection, NanIsNeverAmongTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(largest_dims(std::vector<float>{nan, 1.0F, nan, -2.0F}, 2), (Dims{3, 1}));
}

TEST(MaskSelection, RandomDimsAreASetBySeedAndLayer) {
  const Dims all = random_dims(3, 5, 100, 100);
  Dims sorted = all;
  std::sort(sorted.begin(), sorted.end());
  Dims counted(100);
  std::iota(counted.begin(), counted.end(), 0);
  EXPECT_EQ(sorted, counted);
  EXPECT_EQ(random_dims(3, 5, 100, 10), Dims(all.begin(), all.begin() + 10));
  EXPECT_NE(random_dims(3, 6, 100, 10), random_dims(3, 5, 100, 10));
  EXPECT_NE(random_dims(4, 5, 100, 10), random_dims(3, 5, 100, 10));
}

// Each dim is drawn equally often: 10 of 40 in 4,000 layers is 1,000 times each, with a standard
// deviation of 27.
TEST(MaskSelection, RandomDimsAreSpreadEvenly) {
  std::vector<int> drawn(40, 0);
  for (std::int64_t layer = 0; layer < 4000; ++layer) {
    for (const std::int64_t dim : random_dims(1, layer, 40, 10)) {
      ++drawn[static_cast<std::size_t>(dim)];
    }
  }
  for (const int count : drawn) EXPECT_NEAR(count, 1000, 140);
}

TEST(MaskSelection, JaccardOfSets) {
  EXPECT_DOUBLE_EQ(jaccard(Dims{1, 2, 3}, Dims{3, 2, 9}), 0.5);
  EXPECT_DOUBLE_EQ(jaccard(Dims{}, Dims{}), 1.0);
  EXPECT_DOUBLE_EQ(jaccard(Dims{1}, Dims{2}), 0.0);
}

}  // namespace
}  // namespace onset
