// Thinning never loses a spike: every block's maximum is in the picture, and its place is told.
#include "onset/report/thin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace onset::testing {
namespace {

std::vector<float> random_matrix(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Blocks that lie one after the other and cover [0, count).
void expect_partition(const std::vector<Block>& blocks, std::int64_t count) {
  std::int64_t end = 0;
  for (const Block& block : blocks) {
    EXPECT_EQ(block.begin, end);
    EXPECT_GT(block.size(), 0);
    end = block.end;
  }
  EXPECT_EQ(end, count);
}

TEST(DivideEvenly, CoversEverythingWithFewBlocks) {
  for (const std::int64_t count : {1, 2, 7, 576, 640, 641, 4096, 100003}) {
    for (const std::int64_t most : {1, 2, 96, 640}) {
      const auto blocks = divide_evenly(count, most);
      expect_partition(blocks, count);
      EXPECT_LE(static_cast<std::int64_t>(blocks.size()), most);
      if (count <= most) {
        EXPECT_EQ(static_cast<std::int64_t>(blocks.size()), count);
      }
    }
  }
  EXPECT_TRUE(divide_evenly(0, 5).empty());
}

TEST(DivideEvenly, GivesLoneIndicesBlocksOfTheirOwn) {
  const std::vector<std::int64_t> alone{0, 500, 999, 500, -1, 1000};
  const auto blocks = divide_evenly(1000, 10, alone);
  expect_partition(blocks, 1000);
  EXPECT_LE(blocks.size(), 13U);
  for (const std::int64_t index : {0, 500, 999}) {
    EXPECT_NE(std::find(blocks.begin(), blocks.end(), Block{index, index + 1}), blocks.end());
  }
  // All alone: nothing is left to divide.
  const std::vector<std::int64_t> all{0, 1, 2};
  EXPECT_EQ(divide_evenly(3, 1, all).size(), 3U);
}

TEST(BlockMaxima, KeepTheMaximumOfEveryBlockAndItsPlace) {
  const std::int64_t height = 37;
  const std::int64_t width = 101;
  const auto values = random_matrix(static_cast<std::size_t>(height * width), 3);
  const std::vector<std::int64_t> alone{0};
  const auto maxima =
      block_maxima(values, divide_evenly(height, 9, alone), divide_evenly(width, 16));
  EXPECT_FALSE(maxima.exact());
  for (std::size_t r = 0; r < maxima.rows.size(); ++r) {
    for (std::size_t c = 0; c < maxima.columns.size(); ++c) {
      float largest = 0;
      for (auto row = maxima.rows[r].begin; row < maxima.rows[r].end; ++row) {
        for (auto column = maxima.columns[c].begin; column < maxima.columns[c].end; ++column) {
          largest =
              std::max(largest, std::fabs(values[static_cast<std::size_t>(row * width + column)]));
        }
      }
      const auto& cell = maxima.at(r, c);
      EXPECT_EQ(cell.value, largest);
      EXPECT_EQ(std::fabs(values[static_cast<std::size_t>(cell.row * width + cell.column)]),
                largest);
    }
  }
}

TEST(BlockMaxima, ASpikeAnywhereSurvives) {
  const std::int64_t width = 4096;
  for (const std::int64_t spike : {0, 1, 6, 7, 2047, 4090, 4095}) {
    std::vector<float> row(static_cast<std::size_t>(width), 0.5F);
    row[static_cast<std::size_t>(spike)] = -23738.0F;
    const auto maxima = block_maxima(row, divide_evenly(1, 1), divide_evenly(width, 640));
    const auto best =
        std::max_element(maxima.cells.begin(), maxima.cells.end(),
                         [](const auto& a, const auto& b) { return a.value < b.value; });
    EXPECT_EQ(best->value, 23738.0F);
    EXPECT_EQ(best->column, spike);
  }
}

TEST(BlockMaxima, RowsMayComeInAnyPortion) {
  const std::int64_t height = 30;
  const std::int64_t width = 12;
  const auto values = random_matrix(static_cast<std::size_t>(height * width), 5);
  const auto whole = block_maxima(values, divide_evenly(height, 7), divide_evenly(width, 5));
  BlockMaxima portions(divide_evenly(height, 7), divide_evenly(width, 5));
  for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{17, 30}, {0, 1}, {1, 17}}) {
    portions.take(begin,
                  std::span(values).subspan(static_cast<std::size_t>(begin * width),
                                            static_cast<std::size_t>((end - begin) * width)));
  }
  for (std::size_t i = 0; i < whole.cells.size(); ++i) {
    EXPECT_EQ(portions.cells[i].value, whole.cells[i].value);
    EXPECT_EQ(portions.cells[i].row, whole.cells[i].row);
    EXPECT_EQ(portions.cells[i].column, whole.cells[i].column);
  }
}

TEST(BlockMaxima, SmallMatricesStayAsTheyAre) {
  const std::vector<float> values{1, -2, 0, 4};
  const auto maxima = block_maxima(values, divide_evenly(2, 96), divide_evenly(2, 640));
  EXPECT_TRUE(maxima.exact());
  EXPECT_EQ(maxima.at(0, 1).value, 2.0F);
  EXPECT_EQ(maxima.at(1, 0).value, 0.0F);
  EXPECT_EQ(maxima.at(1, 0).row, 1);
}

TEST(BlockMaxima, NanHidesNothing) {
  const std::vector<float> values{std::numeric_limits<float>::quiet_NaN(), 3, 1};
  const auto maxima = block_maxima(values, divide_evenly(1, 1), divide_evenly(3, 1));
  EXPECT_EQ(maxima.cells.front().value, 3.0F);
}

TEST(RowMaxima, AreOfSingleRowsAlone) {
  const std::vector<float> values{1, -2, 0, 4, -5, 3};
  EXPECT_EQ(row_maxima(block_maxima(values, divide_evenly(3, 3), divide_evenly(2, 1))),
            (std::vector<float>{2, 4, 5}));
  EXPECT_TRUE(row_maxima(block_maxima(values, divide_evenly(3, 2), divide_evenly(2, 2))).empty());
}

}  // namespace
}  // namespace onset::testing
