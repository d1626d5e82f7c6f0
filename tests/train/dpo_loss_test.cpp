#include "onset/train/dpo_loss.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include "finite_differences.h"
#include "support/tensors.h"
#include "training_fixtures.h"

namespace onset {
namespace {

using testing::autograd_of;
using testing::doubles;
using testing::error_of;

// Two pairs: d = (h_c - h_r) is 3 - (-1) = 4 and -2 - 1 = -3.
DpoPairs two_pairs() {
  return {.policy_chosen = doubles({-7, -12}),
          .policy_rejected = doubles({-9, -4}),
          .reference_chosen = doubles({-10, -10}),
          .reference_rejected = doubles({-8, -5}),
          .chosen_lengths = doubles({4, 5}),
          .rejected_lengths = doubles({2, 10})};
}

double log_sigma(double x) { return -std::log1p(std::exp(-x)); }

TEST(DpoLoss, EachTypeFollowsItsFormula) {
  const double beta = 0.1;
  const auto mean = [&](DpoLossType type, double smoothing) {
    return dpo_loss(two_pairs(), {.type = type, .beta = beta, .label_smoothing = smoothing}, 2)
        .loss.item<double>();
  };
  EXPECT_NEAR(mean(DpoLossType::sigmoid, 0), -(log_sigma(.4) + log_sigma(-.3)) / 2, 1e-12);
  EXPECT_NEAR(mean(DpoLossType::sigmoid, .1),
              -(.9 * (log_sigma(.4) + log_sigma(-.3)) + .1 * (log_sigma(-.4) + log_sigma(.3))) / 2,
              1e-12);
  EXPECT_NEAR(
      mean(DpoLossType::robust, .1),
      (-.9 * (log_sigma(.4) + log_sigma(-.3)) + .1 * (log_sigma(-.4) + log_sigma(.3))) / 1.6,
      1e-12);
  // 3/4 + 1/2 - 5 = -3.75 and -2/5 - 1/10 - 5 = -5.5.
  EXPECT_NEAR(mean(DpoLossType::ipo, 0), (3.75 * 3.75 + 5.5 * 5.5) / 2, 1e-12);
  EXPECT_NEAR(mean(DpoLossType::ipo_sum, 0), (1.0 + 64.0) / 2, 1e-12);
}

TEST(DpoLoss, TotalsAreSumsOverPairs) {
  const DpoTotals totals = dpo_loss(two_pairs(), {.beta = 0.1}, 2).totals;
  EXPECT_EQ(totals.pairs, 2);
  EXPECT_NEAR(totals.loss, -(log_sigma(.4) + log_sigma(-.3)), 1e-12);
  EXPECT_NEAR(totals.rewards_chosen, .1 * (3 - 2), 1e-12);
  EXPECT_NEAR(totals.rewards_rejected, .1 * (-1 + 1), 1e-12);
  EXPECT_NEAR(totals.margins, .1 * (4 - 3), 1e-12);
  EXPECT_EQ(totals.accurate, 1);
  EXPECT_NEAR(totals.logps_chosen, -19, 1e-12);
  EXPECT_NEAR(totals.logps_rejected, -13, 1e-12);
  DpoTotals twice = totals;
  twice += totals;
  EXPECT_EQ(twice.pairs, 4);
  EXPECT_EQ(twice.accurate, 2);
  EXPECT_NEAR(twice.logps_chosen, -38, 1e-12);
}

// Row 23 of CASES: a policy that is its reference.
TEST(DpoLoss, StartsAtLnTwoWithNoMarginAndNoAccuracy) {
  DpoPairs pairs = two_pairs();
  pairs.policy_chosen = pairs.reference_chosen.clone();
  pairs.policy_rejected = pairs.reference_rejected.clone();
  const DpoLoss start = dpo_loss(pairs, {}, 2);
  EXPECT_NEAR(start.loss.item<double>(), std::log(2.0), 1e-15);
  EXPECT_EQ(start.totals.margins, 0);
  EXPECT_EQ(start.totals.accurate, 0);
  // One step against the gradient and it has moved.
  const at::Tensor gradient = autograd_of(
      [&](const at::Tensor& chosen) {
        DpoPairs moved = pairs;
        moved.policy_chosen = chosen;
        return dpo_loss(moved, {}, 2).loss;
      },
      pairs.policy_chosen);
  pairs.policy_chosen = pairs.policy_chosen - gradient;
  EXPECT_LT(dpo_loss(pairs, {}, 2).loss.item<double>(), std::log(2.0) - 1e-4);
}

TEST(DpoLoss, GradientsEqualFiniteDifferences) {
  for (const DpoLossType type :
       {DpoLossType::sigmoid, DpoLossType::robust, DpoLossType::ipo, DpoLossType::ipo_sum}) {
    const bool smooths = type == DpoLossType::sigmoid || type == DpoLossType::robust;
    const DpoLossOptions options{.type = type, .beta = .3, .label_smoothing = smooths ? .2 : 0};
    const auto loss = [&](const at::Tensor& x) {  // [chosen x 2, rejected x 2]
      DpoPairs pairs = two_pairs();
      pairs.policy_chosen = x.narrow(0, 0, 2);
      pairs.policy_rejected = x.narrow(0, 2, 2);
      return dpo_loss(pairs, options, 5).loss;
    };
    const at::Tensor x = doubles({-7, -12, -9, -4});
    const at::Tensor expected = testing::finite_differences(
        [&](const at::Tensor& at) { return loss(at).item<double>(); }, x);
    EXPECT_TRUE(testing::close(autograd_of(loss, x), expected, {.atol = 1e-8, .rtol = 1e-8}));
  }
}

TEST(DpoLoss, ContributionsOfMicroBatchesAddUp) {
  const DpoPairs all = two_pairs();
  double sum = 0;
  for (const std::int64_t i : {0, 1}) {
    const DpoPairs one{.policy_chosen = all.policy_chosen.narrow(0, i, 1),
                       .policy_rejected = all.policy_rejected.narrow(0, i, 1),
                       .reference_chosen = all.reference_chosen.narrow(0, i, 1),
                       .reference_rejected = all.reference_rejected.narrow(0, i, 1),
                       .chosen_lengths = {},
                       .rejected_lengths = {}};
    sum += dpo_loss(one, {}, 2).loss.item<double>();
  }
  EXPECT_NEAR(sum, dpo_loss(all, {}, 2).loss.item<double>(), 1e-14);
}

// log sigma of -2,000 is -2,000, where log(1 / (1 + exp(2000))) overflows.
TEST(DpoLoss, FarApartLogProbabilitiesStayFinite) {
  DpoPairs pairs = two_pairs();
  pairs.policy_chosen = doubles({-20'010, -10});
  pairs.policy_rejected = doubles({-8, -5});
  EXPECT_NEAR(dpo_loss(pairs, {.beta = .1}, 1 + 1).totals.loss, 2000 + std::log(2.0), 1e-9);
}

TEST(DpoLoss, SettingsWithoutEffectOrOutOfRangeAreRefused) {
  EXPECT_NE(error_of([] { check(DpoLossOptions{.beta = 0}); }).find("beta"), std::string::npos);
  EXPECT_NE(error_of([] { check(DpoLossOptions{.label_smoothing = .5}); }).find("0.5"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              check(DpoLossOptions{.type = DpoLossType::ipo, .label_smoothing = .1});
            }).find("no effect"),
            std::string::npos);
  EXPECT_NE(error_of([] { return dpo_loss(two_pairs(), {}, 1); }).find("cannot hold"),
            std::string::npos);
  DpoPairs uneven = two_pairs();
  uneven.reference_chosen = doubles({-1});
  EXPECT_NE(error_of([&] { return dpo_loss(uneven, {}, 2); }).find("differ in number"),
            std::string::npos);
}

class DpoFixtures : public testing::TrainingFixtures {
 protected:
  static at::Tensor floats(const Json& values, std::size_t begin, std::size_t count) {
    std::vector<float> picked;
    for (std::size_t i = begin; i < begin + count; ++i) picked.push_back(values.at(i).get<float>());
    return at::tensor(picked);
  }

  // Every step's loss and metrics from its stored log-probabilities, within ten times the rounding
  // that the reference measured of itself.
  static void expect_steps(const Json& curve, const DpoLossOptions& options) {
    const Json& noise = curve.at("noise_f32_vs_f64");
    for (const Json& step : curve.at("steps")) {
      SCOPED_TRACE(step.at("step").dump());
      const auto half = step.at("lengths").size() / 2;
      const auto count = static_cast<double>(half);
      const DpoPairs pairs{.policy_chosen = floats(step.at("policy_logps"), 0, half),
                           .policy_rejected = floats(step.at("policy_logps"), half, half),
                           .reference_chosen = floats(step.at("reference_logps"), 0, half),
                           .reference_rejected = floats(step.at("reference_logps"), half, half),
                           .chosen_lengths = floats(step.at("lengths"), 0, half),
                           .rejected_lengths = floats(step.at("lengths"), half, half)};
      const DpoLoss found = dpo_loss(pairs, options, count);
      const auto expect = [&](const std::string& name, double value) {
        const auto expected = step.at(name).get<double>();
        EXPECT_NEAR(value, expected,
                    10 * noise.at(name).get<double>() + 1e-6 * std::abs(expected) + 1e-12)
            << name;
      };
      expect("loss", found.loss.item<double>());
      expect("rewards_chosen", found.totals.rewards_chosen / count);
      expect("rewards_rejected", found.totals.rewards_rejected / count);
      expect("margin", found.totals.margins / count);
      expect("accuracy", found.totals.accurate / count);
    }
  }
};

TEST_F(DpoFixtures, EveryLossOfTheReferencesFollowsFromItsLogProbabilities) {
  for (const std::string model : {"llama", "qwen3"}) {
    for (const std::string mask : {"", "_wemask_frozen", "_wemask_recompute"}) {
      SCOPED_TRACE(model + mask);
      const Json curve = read("dpo_" + model + mask + ".json");
      expect_steps(curve, {.beta = curve.at("hyper").at("beta").get<double>()});
    }
  }
}

TEST_F(DpoFixtures, SoDoThoseOfTheOtherLosses) {
  const std::map<std::string, DpoLossType> types{{"sigmoid_label_smoothing", DpoLossType::sigmoid},
                                                 {"robust", DpoLossType::robust},
                                                 {"ipo", DpoLossType::ipo},
                                                 {"ipo_sum", DpoLossType::ipo_sum}};
  for (const std::string model : {"llama", "qwen3"}) {
    const Json file = read("dpo_" + model + ".json");
    const Json& others = file.at("other_losses_two_steps");
    ASSERT_EQ(others.size(), types.size());
    for (const auto& [name, curve] : others.items()) {
      SCOPED_TRACE(model + " " + name);
      const bool smooths = !name.starts_with("ipo");
      const Json& hyper = file.at("hyper");
      expect_steps(curve,
                   {.type = types.at(name),
                    .beta = hyper.at("beta").get<double>(),
                    .label_smoothing = smooths ? hyper.at("label_smoothing").get<double>() : 0.0});
    }
  }
}

}  // namespace
}  // namespace onset
