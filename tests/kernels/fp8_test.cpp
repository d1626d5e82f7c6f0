// FP8 weights with the scales of their blocks, against the format's definition (OCP 8-bit floating
// point, table 2) and a scalar product.
#include "onset/kernels/stored_matrix.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace onset::testing {
namespace {

// One sign bit, then the exponent, then `fraction_bits` of fraction. e4m3 has no infinities, and
// NaN where all bits but the sign are set; e5m2 is as IEEE has it.
double decoded(unsigned code, unsigned fraction_bits) {
  const bool e4m3 = fraction_bits == 3;
  const int bias = e4m3 ? 7 : 15;
  const unsigned scale = 1U << fraction_bits;
  const unsigned fraction = code % scale;
  const auto exponent = static_cast<int>((code & 127U) / scale);
  const double sign = code >= 128 ? -1.0 : 1.0;
  if (e4m3 && (code & 127U) == 127) return std::numeric_limits<double>::quiet_NaN();
  if (!e4m3 && exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const double significand = static_cast<double>(fraction) / scale + (exponent > 0 ? 1.0 : 0.0);
  return sign * significand * std::pow(2.0, std::max(exponent, 1) - bias);
}

struct Format {
  DType dtype;
  unsigned fraction_bits;
};

constexpr Format e4m3{DType::f8_e4m3, 3};
constexpr Format e5m2{DType::f8_e5m2, 2};

// A matrix of random finite codes with a random scale a block, and the same as plain numbers.
struct Scaled {
  std::vector<std::byte> codes;
  StoredMatrix stored;
  std::vector<double> values;  // row-major

  Scaled(Format format, std::int64_t rows, std::int64_t columns, std::int64_t block_rows,
         std::int64_t block_columns) {
    std::mt19937 random(7);
    std::uniform_int_distribution<unsigned> code(0, 255);
    std::uniform_real_distribution<float> scale(0.01F, 2.0F);
    const std::int64_t across = (columns + block_columns - 1) / block_columns;
    const std::int64_t down = (rows + block_rows - 1) / block_rows;
    auto scales = std::make_shared<BlockScales>();
    scales->block_rows = block_rows;
    scales->block_columns = block_columns;
    for (std::int64_t i = 0; i < down * across; ++i) scales->values.push_back(scale(random));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        unsigned drawn = code(random);
        // e5m2 reaches 57344, beside which small terms are lost: up to 448 here.
        while (!std::isfinite(decoded(drawn, format.fraction_bits)) ||
               std::fabs(decoded(drawn, format.fraction_bits)) > 448) {
          drawn = code(random);
        }
        codes.push_back(static_cast<std::byte>(drawn));
        const auto block = static_cast<std::size_t>(r / block_rows * across + c / block_columns);
        values.push_back(decoded(drawn, format.fraction_bits) *
                         static_cast<double>(scales->values[block]));
      }
    }
    stored = {codes, format.dtype, rows, columns, scales};
  }

  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * stored.columns + column)];
  }
};

// Of the float32 product of two float32 numbers.
void expect_rounded(float found, double exact) {
  EXPECT_NEAR(found, exact, std::fabs(exact) * 0x1p-23);
}

void expect_rows(const at::Tensor& found, const Scaled& whole, std::int64_t first) {
  for (std::int64_t r = 0; r < found.size(0); ++r) {
    for (std::int64_t c = 0; c < found.size(1); ++c) {
      expect_rounded(found[r][c].item<float>(), whole.at(first + r, c));
    }
  }
}

void expect_products(const at::Tensor& x, const StoredMatrix& matrix, const Scaled& whole,
                     std::int64_t first) {
  const at::Tensor found = multiply(x, matrix);
  ASSERT_EQ(found.sizes(), (std::vector<std::int64_t>{x.size(0), matrix.rows}));
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t c = 0; c < matrix.columns; ++c) {
        const double term = x[n][c].item<double>() * whole.at(first + r, c);
        sum += term;
        magnitude += std::fabs(term);
      }
      EXPECT_NEAR(found[n][r].item<double>(), sum, 1e-5 * magnitude);
    }
  }
}

TEST(Fp8, EveryCodeTimesItsScale) {
  const c10::InferenceMode inference;
  std::vector<std::byte> codes;
  for (unsigned code = 0; code < 256; ++code) codes.push_back(static_cast<std::byte>(code));
  for (const Format format : {e4m3, e5m2}) {
    const auto scales = std::make_shared<BlockScales>(
        BlockScales{.values = {0.5F, 3.0F}, .block_rows = 8, .block_columns = 16});
    const StoredMatrix matrix{codes, format.dtype, 16, 16, scales};
    const at::Tensor found = expand(matrix, at::kFloat);
    for (unsigned code = 0; code < 256; ++code) {
      const double expected = decoded(code, format.fraction_bits) * (code < 128 ? 0.5 : 3.0);
      const float value = found[code / 16][code % 16].item<float>();
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << code;
      } else {
        EXPECT_EQ(value, static_cast<float>(expected)) << code;
        EXPECT_EQ(std::signbit(value), code >= 128) << code;
      }
    }
  }
}

TEST(Fp8, TheFormatsLandmarks) {
  EXPECT_EQ(decoded(0x7E, 3), 448.0);
  EXPECT_EQ(decoded(0x01, 3), std::pow(2.0, -9));
  EXPECT_EQ(decoded(0x7B, 2), 57344.0);
  EXPECT_EQ(decoded(0x01, 2), std::pow(2.0, -16));
}

struct Shape {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t block_rows;
  std::int64_t block_columns;
};

// Blocks of 128 that the matrix cuts short in both directions, also below one block; one scale a
// row, one for all, and other sizes.
class Fp8Blocks : public ::testing::TestWithParam<Shape> {
 protected:
  [[nodiscard]] static Scaled made(Format format) {
    const Shape shape = GetParam();
    return {format, shape.rows, shape.columns, shape.block_rows, shape.block_columns};
  }
  c10::InferenceMode inference_;
};

TEST_P(Fp8Blocks, ExpandAndGatherGiveTheScaledNumbers) {
  for (const Format format : {e4m3, e5m2}) {
    const Scaled whole = made(format);
    expect_rows(expand(whole.stored, at::kFloat), whole, 0);
    EXPECT_TRUE(at::equal(expand(whole.stored, at::kDouble).to(at::kFloat),
                          expand(whole.stored, at::kFloat)));
    const std::int64_t last = whole.stored.rows - 1;
    const std::vector<std::int64_t> ids{last, 0, last / 2};
    const at::Tensor gathered = gather_rows(whole.stored, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      expect_rows(gathered.narrow(0, static_cast<std::int64_t>(i), 1), whole, ids[i]);
    }
  }
}

TEST_P(Fp8Blocks, SlicesKeepTheirScales) {
  const Scaled whole = made(e4m3);
  const std::int64_t rows = whole.stored.rows;
  for (const auto& [first, count] : {std::pair{rows / 2 + 1, rows - rows / 2 - 1},
                                     std::pair<std::int64_t, std::int64_t>{1, rows / 3}}) {
    const StoredMatrix part = whole.stored.slice(first, count);
    expect_rows(expand(part, at::kFloat), whole, first);
    const StoredMatrix inner = part.slice(1, count - 1);
    expect_rows(expand(inner, at::kFloat), whole, first + 1);
    expect_products(at::randn({2, part.columns}), part, whole, first);
  }
}

TEST_P(Fp8Blocks, ProductsEqualTheScalarOnes) {
  for (const Format format : {e4m3, e5m2}) {
    const Scaled whole = made(format);
    for (const std::int64_t n : {1, 3}) {
      expect_products(at::randn({n, whole.stored.columns}), whole.stored, whole, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Fp8Blocks,
                         ::testing::Values(Shape{130, 200, 128, 128}, Shape{257, 129, 128, 128},
                                           Shape{24, 48, 128, 128}, Shape{128, 256, 128, 128},
                                           Shape{50, 70, 1, 70}, Shape{50, 70, 50, 70},
                                           Shape{33, 65, 32, 16}),
                         [](const auto& parameter) {
                           const Shape& s = parameter.param;
                           return std::to_string(s.rows) + "x" + std::to_string(s.columns) + "By" +
                                  std::to_string(s.block_rows) + "x" +
                                  std::to_string(s.block_columns);
                         });

}  // namespace
}  // namespace onset::testing
