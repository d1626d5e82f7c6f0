// Products of few rows with stored weights, against sums in float64 over what to_float32 makes of
// the same bytes.
#include "onset/kernels/few_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "onset/checkpoint/dtype.h"
#include "support/random_values.h"

namespace onset::testing {
namespace {

using Values = std::vector<float>;

struct Format {
  DType dtype;
  std::vector<std::size_t> halves;  // where a block has float16 scales
};

std::vector<Format> formats() {
  return {{DType::f32, {}},      {DType::f16, {0}},     {DType::bf16, {}},
          {DType::q4_0, {0}},    {DType::q4_1, {0, 2}}, {DType::q5_0, {0}},
          {DType::q5_1, {0, 2}}, {DType::q8_0, {0}},    {DType::q4_k, {0, 2}},
          {DType::q5_k, {0, 2}}, {DType::q6_k, {208}},  {DType::iq4_nl, {0}}};
}

// Any bytes, with scales of both signs between 2^-6 and 2^2; plain numbers in the same range.
std::vector<std::byte> random_blocks(const Format& format, std::int64_t values, unsigned seed) {
  const DTypeInfo& info = dtype_info(format.dtype);
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(values / info.block_values * info.block_bytes));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xffU);
  const auto put = [&](std::size_t at, std::uint16_t half) {
    std::memcpy(bytes.data() + at, &half, sizeof half);
  };
  for (std::size_t block = 0; block < bytes.size();
       block += static_cast<std::size_t>(info.block_bytes)) {
    const auto sign_and_fraction = static_cast<std::uint16_t>(random() & 0x83ffU);
    const auto exponent = static_cast<std::uint16_t>(9 + random() % 8);
    for (const std::size_t at : format.halves) {
      put(block + at, static_cast<std::uint16_t>(sign_and_fraction | exponent << 10U));
    }
    // The upper half of a float32 is a bfloat16.
    const auto top = static_cast<std::uint16_t>((random() & 0x807fU) | (121 + random() % 8) << 7U);
    if (format.dtype == DType::bf16) put(block, top);
    if (format.dtype == DType::f32) put(block + 2, top);
  }
  return bytes;
}

FewRows product_of(const Format& format, const Values& x, std::int64_t columns,
                   const std::vector<std::byte>& bytes, std::int64_t count) {
  return {.x = x.data(),
          .n = static_cast<std::int64_t>(x.size()) / columns,
          .columns = columns,
          .dtype = format.dtype,
          .weights = bytes,
          .count = count};
}

class FewRowsTest : public ::testing::TestWithParam<FewRowsType> {
 protected:
  void SetUp() override {
    if (!has_few_rows(DType::q4_0, GetParam())) GTEST_SKIP() << "this CPU has no AVX-512 for it";
  }
  [[nodiscard]] float as_multiplied(float value) const {
    return GetParam() == FewRowsType::bf16 ? rounded(value) : value;
  }
  // What the bytes mean, and how they are multiplied.
  [[nodiscard]] Values weights_of(const Format& format, const std::vector<std::byte>& bytes,
                                  std::int64_t count) const {
    Values values(static_cast<std::size_t>(count));
    to_float32(format.dtype, bytes, values);
    for (float& value : values) value = as_multiplied(value);
    return values;
  }
};

// A row of x that is 1 in one column and 0 elsewhere picks one weight, without any rounding.
TEST_P(FewRowsTest, EveryWeightIsToTheBitWhatTheConversionMakes) {
  for (const Format& format : formats()) {
    const std::int64_t columns = 512;
    const std::int64_t count = 5;
    const std::vector<std::byte> bytes = random_blocks(format, count * columns, 3);
    const Values weights = weights_of(format, bytes, count * columns);
    const std::int64_t n = 8;
    for (std::int64_t first = 0; first < columns; first += n) {
      Values x(static_cast<std::size_t>(n * columns), 0.0F);
      for (std::int64_t i = 0; i < n; ++i) {
        x[static_cast<std::size_t>(i * columns + first + i)] = 1.0F;
      }
      Values out(static_cast<std::size_t>(n * count));
      multiply_few_rows(product_of(format, x, columns, bytes, count), GetParam(), out.data(),
                        count);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t r = 0; r < count; ++r) {
          ASSERT_EQ(out[static_cast<std::size_t>(i * count + r)],
                    weights[static_cast<std::size_t>(r * columns + first + i)])
              << dtype_info(format.dtype).name << " at " << r << ", " << first + i;
        }
      }
    }
  }
}

// Every number of rows of x and of weights on both sides of what is worked on together, columns on
// both sides of a chain of sums, for plain types columns that fill no vector.
TEST_P(FewRowsTest, SumTheProductsOfEachRowAndWriteNothingBeside) {
  for (const Format& format : formats()) {
    const std::int64_t block = dtype_info(format.dtype).block_values;
    const std::vector<std::int64_t> widths =
        block == 1 ? std::vector<std::int64_t>{1, 15, 33, 576, 3080}
                   : std::vector<std::int64_t>{block, 9 * block, 3072 + block};
    for (const std::int64_t columns : widths) {
      for (std::int64_t n = 1; n <= most_few_rows; ++n) {
        for (const std::int64_t count : {1, 3, 16, 19, 37}) {
          if (columns > 1000 && count != 19) continue;
          const Values x = [&] {
            Values values = normal_values(n * columns, 1);
            for (float& value : values) value = as_multiplied(value);
            return values;
          }();
          const std::vector<std::byte> bytes = random_blocks(format, count * columns, 2);
          const Values weights = weights_of(format, bytes, count * columns);
          const std::int64_t stride = count + 3;
          Values out(static_cast<std::size_t>(n * stride), -7.0F);
          multiply_few_rows(product_of(format, x, columns, bytes, count), GetParam(),
                            out.data() + 1, stride);
          for (std::int64_t i = 0; i < n; ++i) {
            const float* row = out.data() + i * stride;
            ASSERT_EQ(row[0], -7.0F);
            ASSERT_EQ(row[count + 1], -7.0F);
            for (std::int64_t r = 0; r < count; ++r) {
              double sum = 0;
              double size = 0;
              for (std::int64_t c = 0; c < columns; ++c) {
                const double product =
                    static_cast<double>(x[static_cast<std::size_t>(i * columns + c)]) *
                    static_cast<double>(weights[static_cast<std::size_t>(r * columns + c)]);
                sum += product;
                size += std::abs(product);
              }
              ASSERT_NEAR(static_cast<double>(row[1 + r]), sum, 2e-6 * size + 1e-6)
                  << dtype_info(format.dtype).name << ", " << n << " x " << count << " x "
                  << columns << " at " << i << ", " << r;
            }
          }
        }
      }
    }
  }
}

TEST_P(FewRowsTest, ThereIsNoKernelForFormatsThatAreConvertedFirst) {
  for (const DType dtype : {DType::f64, DType::f8_e4m3, DType::q2_k, DType::q3_k, DType::i8}) {
    EXPECT_FALSE(has_few_rows(dtype, GetParam())) << dtype_info(dtype).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, FewRowsTest,
                         ::testing::Values(FewRowsType::f32, FewRowsType::bf16),
                         [](const auto& tested) {
                           return tested.param == FewRowsType::f32 ? "F32" : "Bf16";
                         });

}  // namespace
}  // namespace onset::testing
