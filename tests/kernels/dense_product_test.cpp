// Products of float32 panels against sums in float64, by each library in libtorch.
#include "onset/kernels/dense_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace onset::testing {
namespace {

struct Panel {
  std::vector<float> x;
  std::vector<float> rows;
  PanelProduct product;

  Panel(std::int64_t n, std::int64_t count, std::int64_t columns, std::int64_t row_stride) {
    std::mt19937 random(3);
    std::normal_distribution<float> value;
    for (std::int64_t i = 0; i < n * columns; ++i) x.push_back(value(random));
    for (std::int64_t i = 0; i < count * row_stride; ++i) rows.push_back(value(random));
    product = {x.data(), n, rows.data(), count, columns, row_stride};
  }

  [[nodiscard]] double expected(std::int64_t i, std::int64_t r) const {
    double sum = 0;
    for (std::int64_t c = 0; c < product.columns; ++c) {
      sum += static_cast<double>(x[static_cast<std::size_t>(i * product.columns + c)]) *
             static_cast<double>(rows[static_cast<std::size_t>(r * product.row_stride + c)]);
    }
    return sum;
  }
};

struct Sizes {
  std::int64_t n, count, columns, row_stride;
};

const std::vector<Sizes>& sizes() {
  static const std::vector<Sizes> all{{1, 1, 1, 1},       {1, 16, 576, 576},   {7, 33, 129, 129},
                                      {5, 40, 100, 104},  {64, 128, 192, 192}, {130, 128, 96, 112},
                                      {200, 17, 512, 600}};
  return all;
}

class PanelLibraries : public ::testing::TestWithParam<PanelLibrary> {};

TEST_P(PanelLibraries, SumTheProductsOfEachRow) {
  if (!has_library(GetParam())) GTEST_SKIP() << "this libtorch has no oneDNN";
  for (const Sizes& s : sizes()) {
    const Panel panel(s.n, s.count, s.columns, s.row_stride);
    const at::Tensor out = panel_product_by(GetParam(), panel.product);
    ASSERT_EQ(out.sizes(), (std::vector<std::int64_t>{s.n, s.count}));
    for (std::int64_t i = 0; i < s.n; ++i) {
      for (std::int64_t r = 0; r < s.count; ++r) {
        ASSERT_NEAR(out[i][r].item<double>(), panel.expected(i, r), 2e-4)
            << s.n << " x " << s.count << " x " << s.columns << " at " << i << ", " << r;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, PanelLibraries,
                         ::testing::Values(PanelLibrary::blas, PanelLibrary::onednn),
                         [](const auto& tested) {
                           return tested.param == PanelLibrary::blas ? "Blas" : "OneDnn";
                         });

TEST(PanelProduct, WritesAStripeAndNothingBesideIt) {
  for (const Sizes& s : sizes()) {
    const Panel panel(s.n, s.count, s.columns, s.row_stride);
    const std::int64_t out_stride = s.count + 3;
    std::vector<float> out(static_cast<std::size_t>(s.n * out_stride), -7.0F);
    multiply_panel(panel.product, out.data() + 1, out_stride);
    for (std::int64_t i = 0; i < s.n; ++i) {
      const float* row = out.data() + i * out_stride;
      EXPECT_EQ(row[0], -7.0F);
      EXPECT_EQ(row[s.count + 1], -7.0F);
      for (std::int64_t r = 0; r < s.count; ++r) {
        ASSERT_NEAR(static_cast<double>(row[1 + r]), panel.expected(i, r), 2e-4);
      }
    }
  }
}

}  // namespace
}  // namespace onset::testing
