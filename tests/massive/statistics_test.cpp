#include "onset/massive/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace onset {
namespace {

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-40, 40);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(normal(random), exponent(random));
  return values;
}

TEST(LowerMedian, EqualsTheSortedMiddle) {
  for (std::size_t count = 1; count < 70; ++count) {
    std::vector<float> values = random_values(count, count);
    if (count > 4) values[0] = values[1] = 0.0F;
    if (count > 4) values[2] = -values[3];
    std::vector<float> sorted;
    for (const float value : values) sorted.push_back(std::fabs(value));
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(lower_median_abs(values), sorted[(count - 1) / 2]) << count;
  }
}

TEST(LargestEntries, EqualAStableSort) {
  std::vector<float> values = random_values(60, 7);
  values[11] = 5.0F;
  values[23] = -5.0F;
  values[41] = 5.0F;
  const StateView state{values, 6};
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::fabs(values[a]) > std::fabs(values[b]);
  });
  for (const std::int64_t count : {0, 1, 5, 59, 60, 1000}) {
    const auto found = largest_entries(state, count);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(std::min<std::int64_t>(count, 60)));
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].token, static_cast<std::int64_t>(order[i] / 6));
      EXPECT_EQ(found[i].dim, static_cast<std::int64_t>(order[i] % 6));
      EXPECT_EQ(found[i].value, values[order[i]]);
    }
  }
}

TEST(EntriesAbove, CountsAllAndListsTheLargest) {
  const std::vector<float> values{1, -4, 3, 2, -2, 5};
  std::int64_t total = 0;
  const auto found = entries_above({values, 3}, 1.5, 3, total);
  EXPECT_EQ(total, 5);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].value, 5);
  EXPECT_EQ(found[1].value, -4);
  EXPECT_EQ(found[2].value, 3);
  EXPECT_EQ(entries_above({values, 3}, 4.0, 3, total).size(), 1U) << "strictly above";
}

TEST(FirstNotFinite, FindsNanAndInfinity) {
  std::vector<float> values{1, 2, 3.4e38F, -3.4e38F};
  EXPECT_EQ(first_not_finite(values), -1);
  values[2] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_not_finite(values), 2);
  values[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first_not_finite(values), 1);
}

}  // namespace
}  // namespace onset
