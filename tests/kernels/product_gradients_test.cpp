// Gradients of products against sums in float64 over the same numbers, rounded where they are.
#include "onset/kernels/product_gradients.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/random_values.h"

namespace onset::testing {
namespace {

struct Sizes {
  std::int64_t n, out, in;
};

// Odd numbers, single ones, and more than a panel or a chain of sums.
const std::vector<Sizes>& sizes() {
  static const std::vector<Sizes> all{{1, 1, 1},     {2, 3, 5},      {7, 33, 17},   {31, 15, 48},
                                      {64, 130, 80}, {20, 3101, 40}, {255, 64, 33}, {391, 20, 49}};
  return all;
}

at::Tensor normal(std::int64_t rows, std::int64_t columns, unsigned seed) {
  return at::tensor(normal_values(rows * columns, seed)).view({rows, columns});
}

at::Tensor exact(const at::Tensor& tensor, ProductType type) {
  const at::Tensor values = type == ProductType::bf16 ? tensor.to(at::kBFloat16) : tensor;
  return values.to(at::kDouble);
}

class ProductGradients : public ::testing::TestWithParam<ProductType> {
 protected:
  // Of a product of a and b in float64.
  static void expect_product(const at::Tensor& got, const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor expected = at::mm(a, b);
    const at::Tensor size = at::mm(a.abs(), b.abs());
    ASSERT_EQ(got.sizes(), expected.sizes());
    const at::Tensor error = got.to(at::kDouble).sub(expected).abs();
    EXPECT_TRUE(error.le(size.mul(2e-6).add(1e-6)).all().item<bool>())
        << error.max().item<double>();
  }
};

TEST_P(ProductGradients, OfTheInputIsDyTimesTheWeight) {
  for (const Sizes& s : sizes()) {
    const at::Tensor dy = normal(s.n, s.out, 1);
    const at::Tensor weight = normal(s.out, s.in, 2);
    const at::Tensor as_bf16 = weight.to(at::kBFloat16);
    expect_product(input_gradient(dy, stored_view(weight), GetParam()), exact(dy, GetParam()),
                   exact(weight, GetParam()));
    expect_product(input_gradient(dy, stored_view(as_bf16), GetParam()), exact(dy, GetParam()),
                   as_bf16.to(at::kDouble));
  }
}

// The input may have been rounded before: the products round it to the same.
TEST_P(ProductGradients, OfTheWeightTakeARoundedInput) {
  for (const Sizes& s : sizes()) {
    const at::Tensor dy = normal(s.n, s.out, 5);
    const at::Tensor x = normal(s.n, s.in, 6).to(at::kBFloat16);
    const at::Tensor found = weight_gradient(dy, x, GetParam());
    EXPECT_EQ(found.scalar_type(), at::kFloat);
    expect_product(found, exact(dy, GetParam()).t(), x.to(at::kDouble));
  }
}

TEST_P(ProductGradients, OneWeightServesSeveral) {
  const at::Tensor weight = normal(40, 24, 3);
  const InputGradients gradients(stored_view(weight), GetParam());
  for (const std::int64_t n : {1, 50}) {
    const at::Tensor dy = normal(n, 40, 4);
    expect_product(gradients(dy), exact(dy, GetParam()), exact(weight, GetParam()));
  }
}

TEST_P(ProductGradients, OfTheWeightIsTheSumOverTheRows) {
  for (const Sizes& s : sizes()) {
    const at::Tensor dy = normal(s.n, s.out, 5);
    const at::Tensor x = normal(s.n, s.in, 6);
    const at::Tensor dy_t = exact(dy, GetParam()).t();
    expect_product(weight_gradient(dy, x, GetParam()), dy_t, exact(x, GetParam()));
    const at::Tensor sum = at::zeros({s.out, s.in});
    for (int i = 0; i < 2; ++i) add_weight_gradient(dy, x, GetParam(), sum);
    expect_product(sum.div(2), dy_t, exact(x, GetParam()));
  }
}

// A view that is not contiguous, as autograd hands on.
TEST_P(ProductGradients, TakeTurnedInputs) {
  const at::Tensor dy = normal(12, 30, 7).t();
  const at::Tensor x = normal(8, 30, 8).t();
  expect_product(weight_gradient(dy, x, GetParam()), exact(dy, GetParam()).t(),
                 exact(x, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Kernels, ProductGradients,
                         ::testing::Values(ProductType::f32, ProductType::bf16),
                         [](const auto& tested) {
                           return tested.param == ProductType::f32 ? "F32" : "Bf16";
                         });

}  // namespace
}  // namespace onset::testing
