// Narrow products against float64.
#include "onset/kernels/low_rank.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/random_values.h"

namespace onset::testing {
namespace {

at::Tensor normal(std::int64_t rows, std::int64_t columns, unsigned seed) {
  return at::tensor(normal_values(rows * columns, seed)).view({rows, columns});
}

at::Tensor exact(const at::Tensor& tensor) { return tensor.to(at::kDouble); }

// a times b, and what was there before.
void expect_product(const at::Tensor& got, const at::Tensor& a, const at::Tensor& b,
                    const at::Tensor& before = {}) {
  at::Tensor expected = at::mm(a, b);
  if (before.defined()) expected = expected.add(before);
  ASSERT_EQ(got.sizes(), expected.sizes());
  const at::Tensor error = exact(got).sub(expected).abs();
  EXPECT_TRUE(error.le(at::mm(a.abs(), b.abs()).mul(2e-6).add(1e-5)).all().item<bool>())
      << error.max().item<double>();
}

struct Sizes {
  std::int64_t n, rank, in, out;
};

class LowRank : public ::testing::TestWithParam<Sizes> {};

TEST_P(LowRank, ProductsAndGradientsEqualTheirDefinition) {
  const Sizes s = GetParam();
  constexpr double scale = 1.7;
  const at::Tensor x = normal(s.n, s.in, 1);
  const at::Tensor down = normal(s.rank, s.in, 2);
  const at::Tensor up = normal(s.out, s.rank, 3);
  const at::Tensor dy = normal(s.n, s.out, 4);
  const at::Tensor h = to_low_rank(x, down);
  expect_product(h, exact(x), exact(down).t());
  const at::Tensor y = normal(s.n, s.out, 5);
  const at::Tensor y_before = exact(y);
  add_from_low_rank(h, up, scale, y);
  expect_product(y, exact(h).mul(scale), exact(up).t(), y_before);
  const at::Tensor dh = low_rank_gradient(dy, up, scale);
  expect_product(dh, exact(dy).mul(scale), exact(up));
  const at::Tensor dx = normal(s.n, s.in, 6);
  const at::Tensor dx_before = exact(dx);
  add_input_gradient(dh, down, dx);
  expect_product(dx, exact(dh), exact(down), dx_before);
  expect_product(narrow_weight_gradient(dh, x), exact(dh).t(), exact(x));
}

INSTANTIATE_TEST_SUITE_P(Kernels, LowRank,
                         ::testing::Values(Sizes{1, 1, 1, 1}, Sizes{5, 3, 17, 40},
                                           Sizes{70, 16, 64, 130}, Sizes{33, 20, 100, 7},
                                           Sizes{257, 64, 48, 96}));

}  // namespace
}  // namespace onset::testing
