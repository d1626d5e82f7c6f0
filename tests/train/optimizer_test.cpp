#include "onset/train/optimizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "finite_differences.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset {
namespace {

using testing::doubles;
using testing::error_of;

Parameter parameter(const std::string& name, at::Tensor value) {
  value.requires_grad_();
  return {name, std::move(value)};
}

void set_gradient(const Parameter& parameter, const at::Tensor& gradient) {
  parameter.value.mutable_grad() = gradient;
}

// The update of one weight by the formulas, in plain doubles.
struct ByHand {
  double w;
  double m = 0;
  double v = 0;
  int t = 0;

  void step(double g, double lr, double decay, const AdamWOptions& options) {
    ++t;
    w *= 1 - lr * decay;
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    const double mean = m / (1 - std::pow(options.beta1, t));
    const double square = v / (1 - std::pow(options.beta2, t));
    w -= lr * mean / (std::sqrt(square) + options.epsilon);
  }
};

TEST(AdamW, FollowsTheFormulasOverSeveralSteps) {
  const std::vector<double> start{.5, -1.25, 3, -.001, 0, 40};
  for (const auto decays : {WeightDecay::all, WeightDecay::matrices}) {
    const AdamWOptions options{
        .beta1 = .8, .beta2 = .95, .epsilon = 1e-6, .weight_decay = .1, .decays = decays};
    const Parameter matrix = parameter("matrix", doubles(start).reshape({2, 3}).clone());
    const Parameter gain = parameter("gain", doubles(start).clone());
    AdamW optimizer({matrix, gain}, options);
    std::vector<ByHand> matrix_by_hand;
    std::vector<ByHand> gain_by_hand;
    for (const double w : start) {
      matrix_by_hand.push_back({w});
      gain_by_hand.push_back({w});
    }
    for (int step = 0; step < 7; ++step) {
      const double lr = step == 0 ? 0 : 0.03 / step;
      std::vector<double> gradient;
      for (std::size_t i = 0; i < start.size(); ++i) {
        gradient.push_back(std::sin(3.7 * static_cast<double>(i) + 1.3 * step) *
                           std::pow(10.0, static_cast<double>(i) - 4));
        matrix_by_hand[i].step(gradient[i], lr, .1, options);
        gain_by_hand[i].step(gradient[i], lr, decays == WeightDecay::all ? .1 : 0, options);
      }
      set_gradient(matrix, doubles(gradient).reshape({2, 3}));
      set_gradient(gain, doubles(gradient));
      optimizer.step(lr);
    }
    for (std::size_t i = 0; i < start.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      EXPECT_NEAR(matrix.value.reshape({-1})[at].item<double>(), matrix_by_hand[i].w, 1e-12);
      EXPECT_NEAR(gain.value[at].item<double>(), gain_by_hand[i].w, 1e-12);
      EXPECT_NEAR(optimizer.moments()[1].first[at].item<double>(), gain_by_hand[i].m, 1e-14);
      EXPECT_NEAR(optimizer.moments()[1].second[at].item<double>(), gain_by_hand[i].v, 1e-14);
    }
    EXPECT_EQ(optimizer.moments()[0].steps.item<double>(), 7);
  }
}

TEST(AdamW, ARateOfZeroMovesTheMomentsAlone) {
  const Parameter weight = parameter("w", doubles({2, -3}).reshape({1, 2}).clone());
  AdamW optimizer({weight}, {.weight_decay = .5, .decays = WeightDecay::all});
  set_gradient(weight, doubles({1, 4}).reshape({1, 2}));
  optimizer.step(0);
  EXPECT_TRUE(testing::close(weight.value.reshape({-1}), doubles({2, -3}), {}));
  EXPECT_TRUE(testing::close(optimizer.moments()[0].first.reshape({-1}), doubles({.1, .4}),
                             {.atol = 1e-15}));
}

TEST(AdamW, ATensorWithoutAGradientStaysAndItsStepsToo) {
  const Parameter used = parameter("used", doubles({1}).clone());
  const Parameter unused = parameter("unused", doubles({1}).clone());
  AdamW optimizer({used, unused}, {.weight_decay = .5, .decays = WeightDecay::all});
  set_gradient(used, doubles({1}));
  optimizer.step(.1);
  EXPECT_EQ(unused.value.item<double>(), 1);
  EXPECT_NE(used.value.item<double>(), 1);
  EXPECT_EQ(optimizer.moments()[1].steps.item<double>(), 0);
}

// The state is all there is: written into another optimizer, the curves are the same bits.
TEST(AdamW, GoesOnFromItsMomentsBitForBit) {
  const auto gradient = [](int step) { return at::sin(at::arange(1000) * 0.7 + step); };
  const auto start = [] { return parameter("w", at::cos(at::arange(1000)).clone()); };
  const Parameter whole = start();
  AdamW uninterrupted({whole}, {});
  for (int step = 0; step < 6; ++step) {
    set_gradient(whole, gradient(step));
    uninterrupted.step(.01);
  }
  const Parameter before = start();
  AdamW first({before}, {});
  for (int step = 0; step < 3; ++step) {
    set_gradient(before, gradient(step));
    first.step(.01);
  }
  const Parameter after = parameter("w", before.value.detach().clone());
  AdamW second({after}, {});
  second.moments()[0].steps.copy_(first.moments()[0].steps);
  second.moments()[0].first.copy_(first.moments()[0].first);
  second.moments()[0].second.copy_(first.moments()[0].second);
  for (int step = 3; step < 6; ++step) {
    set_gradient(after, gradient(step));
    second.step(.01);
  }
  EXPECT_TRUE(at::equal(after.value, whole.value));
}

TEST(AdamW, OptionsAndTensorsThatDoNotFitAreRefused) {
  const Parameter weight = parameter("w", doubles({1}).clone());
  EXPECT_NE(error_of([&] { AdamW({weight}, {.beta2 = 1}); }).find("betas"), std::string::npos);
  EXPECT_NE(error_of([&] { AdamW({weight}, {.epsilon = 0}); }).find("epsilon"), std::string::npos);
  EXPECT_NE(error_of([&] {
              AdamW({weight, weight}, {});
            }).find("trained twice"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              AdamW({{"fixed", doubles({1})}}, {});
            }).find("fixed"),
            std::string::npos);
}

// 3-4-12: a norm of 13 over both tensors.
TEST(Gradients, AreClippedToANormOverAllTensors) {
  const std::vector<Parameter> parameters{parameter("a", doubles({0, 0}).clone()),
                                          parameter("unused", doubles({0}).clone()),
                                          parameter("b", doubles({0}).clone())};
  const auto fill = [&] {
    set_gradient(parameters[0], doubles({3, -4}));
    set_gradient(parameters[2], doubles({12}));
  };
  fill();
  EXPECT_NEAR(clip_gradients(parameters, 2), 13, 1e-14);
  const double factor = 2 / (13 + 1e-6);
  EXPECT_TRUE(testing::close(parameters[0].value.grad(), doubles({3 * factor, -4 * factor}),
                             {.atol = 1e-14}));
  EXPECT_NEAR(parameters[2].value.grad().item<double>(), 12 * factor, 1e-14);
  for (const double harmless : {0.0, 14.0}) {
    fill();
    EXPECT_NEAR(clip_gradients(parameters, harmless), 13, 1e-14);
    EXPECT_TRUE(at::equal(parameters[0].value.grad(), doubles({3, -4})));
  }
  EXPECT_EQ(element_count(parameters), 4);
  clear_gradients(parameters);
  EXPECT_FALSE(parameters[0].value.grad().defined());
  EXPECT_EQ(gradient_norm(parameters), 0);
}

TEST(Gradients, ThatAreNotFiniteAreNamedAndLeftAlone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Parameter> parameters{parameter("layers.0.q", doubles({0, 0}).clone()),
                                          parameter("layers.1.k", doubles({0}).clone()),
                                          parameter("layers.2.v", doubles({0}).clone())};
  set_gradient(parameters[0], doubles({3, 4}));
  set_gradient(parameters[1], doubles({nan}));
  set_gradient(parameters[2], doubles({std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(non_finite_gradients(parameters),
            (std::vector<std::string>{"layers.1.k", "layers.2.v"}));
  const std::string message = error_of([&] { clip_gradients(parameters, 1); });
  EXPECT_NE(message.find("gradient of layers.1.k is not finite"), std::string::npos) << message;
  EXPECT_NE(message.find("1 more of 3 tensors"), std::string::npos) << message;
  EXPECT_FALSE(clip_gradients_if_finite(parameters, 1));
  EXPECT_TRUE(at::equal(parameters[0].value.grad(), doubles({3, 4})));
}

}  // namespace
}  // namespace onset
