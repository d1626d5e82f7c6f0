// One-pass kernels of training against autograd in float64.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "onset/kernels/elementwise_gradients.h"
#include "onset/kernels/log_probabilities.h"
#include "support/random_values.h"

namespace onset::testing {
namespace {

at::Tensor normal(std::int64_t rows, std::int64_t columns, double scale, unsigned seed) {
  return at::tensor(normal_values(rows * columns, seed)).view({rows, columns}).mul(scale);
}

double largest_difference(const at::Tensor& got, const at::Tensor& expected) {
  return got.to(at::kDouble).sub(expected).abs().max().item<double>();
}

TEST(GatedGradients, EqualAutogradOfTheDefinition) {
  // Gates from deep in one tail to deep in the other; numbers that fill no vector.
  const at::Tensor gate = normal(37, 41, 30.0, 1);
  const at::Tensor up = normal(37, 41, 1.0, 2);
  const at::Tensor dy = normal(37, 41, 1.0, 3);
  const at::Tensor g = gate.to(at::kDouble).requires_grad_(true);
  const at::Tensor u = up.to(at::kDouble).requires_grad_(true);
  at::silu(g).mul(u).backward(dy.to(at::kDouble));
  const GatedGradients found = silu_gated_gradients(dy, gate, up);
  EXPECT_LT(largest_difference(found.gate, g.grad()), 1e-5);
  EXPECT_LT(largest_difference(found.up, u.grad()), 1e-4);  // of numbers up to 100
}

// What a backward pass kept: gate and up rounded, nothing else.
TEST(GatedGradients, OfRoundedNumbersEqualAutogradOfTheRounded) {
  const at::Tensor gate = normal(37, 41, 30.0, 1).to(at::kBFloat16);
  const at::Tensor up = normal(37, 41, 1.0, 2).to(at::kBFloat16);
  const at::Tensor dy = normal(37, 41, 1.0, 3);
  const at::Tensor g = gate.to(at::kDouble).requires_grad_(true);
  const at::Tensor u = up.to(at::kDouble).requires_grad_(true);
  const at::Tensor product = at::silu(g).mul(u);
  product.backward(dy.to(at::kDouble));
  const GatedGradients found = silu_gated_gradients(dy, gate, up);
  EXPECT_LT(largest_difference(found.gate, g.grad()), 1e-5);
  EXPECT_LT(largest_difference(found.up, u.grad()), 1e-4);  // of numbers up to 100
  const at::Tensor again = fused_silu_gated(gate, up);
  EXPECT_EQ(again.scalar_type(), at::kFloat);
  EXPECT_LT(largest_difference(again, product.detach()), 1e-4);
}

TEST(NormGradientsOf, RowsEqualAutogradOfTheDefinition) {
  for (const std::int64_t width : {1, 7, 16, 45}) {
    const at::Tensor x = normal(130, width, 3.0, 6);
    const at::Tensor gain = normal(1, width, 1.0, 7).view({width});
    const at::Tensor dy = normal(130, width, 1.0, 8);
    const at::Tensor exact = x.to(at::kDouble).requires_grad_(true);
    const at::Tensor exact_gain = gain.to(at::kDouble).requires_grad_(true);
    exact.mul(exact.square().mean(1, /*keepdim=*/true).add(1e-5).rsqrt())
        .mul(exact_gain)
        .backward(dy.to(at::kDouble));
    const NormGradients found = rms_norm_gradients(dy, x, gain, 1e-5);
    EXPECT_LT(largest_difference(found.x, exact.grad()),
              1e-5 * (1 + exact.grad().abs().max().item<double>()));
    EXPECT_LT(largest_difference(found.gain, exact_gain.grad()), 2e-5);
  }
}

class LogProbabilitiesOf : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(LogProbabilitiesOf, TokensAndTheirGradientsEqualAutograd) {
  const std::int64_t width = GetParam();
  const at::Tensor logits = normal(9, width, 8.0, 4);
  const at::Tensor tokens = at::arange(9).mul(7).remainder(width).unsqueeze(1);
  const at::Tensor factors = normal(1, 9, 1.0, 5).view({9});
  const at::Tensor exact = logits.to(at::kDouble).requires_grad_(true);
  const at::Tensor values = at::log_softmax(exact, 1).gather(1, tokens).squeeze(1);
  // The gradient of -log p is softmax - one-hot.
  values.mul(factors.neg().to(at::kDouble)).sum().backward();
  const auto correct = logits.argmax(1, /*keepdim=*/true).eq(tokens).sum().item<std::int64_t>();
  const at::Tensor taken = logits.clone();
  const LogProbabilities found = take_log_probabilities(taken, tokens, factors);
  EXPECT_LT(largest_difference(found.values, values.detach()), 1e-5);
  EXPECT_LT(largest_difference(taken, exact.grad()), 1e-6);
  EXPECT_EQ(found.correct, correct);
}

INSTANTIATE_TEST_SUITE_P(Widths, LogProbabilitiesOf, ::testing::Values(1, 5, 16, 100, 5003));

TEST(LogProbabilitiesOfBadRows, StayBad) {
  const at::Tensor logits = at::zeros({2, 40});
  logits[0][17] = std::nan("");
  logits[1][3] = std::numeric_limits<float>::infinity();
  const LogProbabilities found =
      take_log_probabilities(logits, at::zeros({2, 1}, at::kLong), at::ones({2}));
  EXPECT_TRUE(std::isnan(found.values[0].item<float>()));
  EXPECT_FALSE(std::isfinite(found.values[1].item<float>()));
}

}  // namespace
}  // namespace onset::testing
