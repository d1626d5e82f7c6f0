// Products of packed rows against sums in float64 over the same stored numbers.
#include "onset/kernels/tile_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/random_values.h"

namespace onset::testing {
namespace {

using Values = std::vector<float>;

struct Sizes {
  std::int64_t n, count, columns;
};

// Every number of vectors of lanes, of rows at a time, and chains on both sides of their length.
std::vector<Sizes> sizes() {
  std::vector<Sizes> all{{32, 128, 192}, {33, 9, 194}, {48, 10, 386},  {64, 29, 384},
                         {80, 15, 576},  {97, 33, 2},  {512, 80, 200}, {1, 1, 2}};
  for (std::int64_t n = 1; n <= 50; n += 7) {
    for (std::int64_t count = 1; count <= 15; ++count) all.push_back({n, count, 30 + 2 * count});
  }
  return all;
}

class Tiles : public ::testing::TestWithParam<TileType> {};

TEST_P(Tiles, SumTheProductsOfEachRowAndWriteNothingBeside) {
  const TileType type = GetParam();
  if (!has_tiles(type)) GTEST_SKIP() << "this CPU has no AVX-512 for it";
  const bool bf16 = type == TileType::bf16;
  for (const Sizes& s : sizes()) {
    const Values x = normal_values(s.n * s.columns, 1);
    const Values rows = normal_values(s.count * s.columns, 2);
    std::vector<std::uint16_t> short_rows;
    for (const float value : rows) short_rows.push_back(to_bf16(value));
    TileRows packed(type, s.n, s.columns);
    for (std::int64_t b = 0; b < packed.blocks(); ++b) packed.pack(x.data(), b);
    const std::int64_t stride = s.count + 3;
    Values out(static_cast<std::size_t>(s.n * stride), -7.0F);
    const void* weights = bf16 ? static_cast<const void*>(short_rows.data()) : rows.data();
    multiply_tiles(packed, {.rows = weights, .count = s.count}, out.data() + 1, stride);
    for (std::int64_t i = 0; i < s.n; ++i) {
      const float* row = out.data() + i * stride;
      ASSERT_EQ(row[0], -7.0F);
      ASSERT_EQ(row[s.count + 1], -7.0F);
      for (std::int64_t r = 0; r < s.count; ++r) {
        double sum = 0;
        double size = 0;
        for (std::int64_t c = 0; c < s.columns; ++c) {
          float a = x[static_cast<std::size_t>(i * s.columns + c)];
          float b = rows[static_cast<std::size_t>(r * s.columns + c)];
          if (bf16) a = rounded(a), b = rounded(b);
          sum += static_cast<double>(a) * static_cast<double>(b);
          size += std::abs(static_cast<double>(a) * static_cast<double>(b));
        }
        ASSERT_NEAR(static_cast<double>(row[1 + r]), sum, 2e-6 * size + 1e-6)
            << s.n << " x " << s.count << " x " << s.columns << " at " << i << ", " << r;
      }
    }
  }
}

// A sum that begins with a term 2^23 times as large as the rest loses at most half a unit in each
// addition of its chain; the terms of later chains are added among themselves first.
TEST(TileSums, OneLargeTermCostsItsOwnChainAlone) {
  if (!has_tiles(TileType::f32)) GTEST_SKIP() << "this CPU has no AVX-512";
  const std::int64_t columns = 8 * tile_depth;
  Values x(static_cast<std::size_t>(columns), 1.0F);
  Values row(static_cast<std::size_t>(columns), 0.4F);
  row[0] = 8388608.0F;
  TileRows packed(TileType::f32, 1, columns);
  packed.pack(x.data(), 0);
  float out = 0;
  multiply_tiles(packed, {.rows = row.data(), .count = 1}, &out, 1);
  // Steps of 1 above 2^23: each 0.4 of the first chain is lost, sums of 76.8 arrive as 77.
  const double expected = 8388608.0 + 7 * 77;
  EXPECT_EQ(static_cast<double>(out), expected);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Tiles, ::testing::Values(TileType::f32, TileType::bf16),
                         [](const auto& tested) {
                           return tested.param == TileType::f32 ? "F32" : "Bf16";
                         });

}  // namespace
}  // namespace onset::testing
