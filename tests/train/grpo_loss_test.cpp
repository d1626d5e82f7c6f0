#include "onset/train/grpo_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "finite_differences.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset {
namespace {

using testing::autograd_of;
using testing::doubles;
using testing::error_of;

constexpr std::array all_types{GrpoLossType::grpo, GrpoLossType::bnpo, GrpoLossType::dapo,
                               GrpoLossType::dr_grpo};

// Row 28 of CASES: completions of 2 and 8 tokens with advantages 1 and -1, before the first update
// (every ratio is 1), so that a token's loss is minus its advantage.
GrpoCompletions two_and_eight() {
  const at::Tensor logps = at::full({10}, -1.5, at::kDouble);
  return {.logps = logps,
          .old_logps = logps,
          .reference_logps = {},
          .lengths = {2, 8},
          .advantages = {1, -1},
          .counted = {}};
}

double loss_of(const GrpoCompletions& completions, GrpoLossType type, const GrpoWindow& window) {
  return grpo_loss(completions, {.type = type, .max_completion_length = 16}, window)
      .loss.item<double>();
}

TEST(GrpoLoss, HandValuesOfEachNormaliser) {
  const GrpoWindow window{.completions = 2, .tokens = 10, .micro_batches = 1};
  EXPECT_NEAR(loss_of(two_and_eight(), GrpoLossType::grpo, window), (-2. / 2 + 8. / 8) / 2, 1e-12);
  EXPECT_NEAR(loss_of(two_and_eight(), GrpoLossType::bnpo, window), (-2. + 8) / 10, 1e-12);
  EXPECT_NEAR(loss_of(two_and_eight(), GrpoLossType::dapo, window), (-2. + 8) / 10, 1e-12);
  EXPECT_NEAR(loss_of(two_and_eight(), GrpoLossType::dr_grpo, window), (-2. + 8) / (2 * 16), 1e-12);
}

// What each token weighs, which the sums above hide.
TEST(GrpoLoss, HandGradientsOfEachNormaliser) {
  const GrpoWindow window{.completions = 2, .tokens = 10, .micro_batches = 1};
  const auto gradient = [&](GrpoLossType type) {
    return autograd_of(
        [&](const at::Tensor& logps) {
          GrpoCompletions completions = two_and_eight();
          completions.logps = logps;
          return grpo_loss(completions, {.type = type, .max_completion_length = 16}, window).loss;
        },
        two_and_eight().logps);
  };
  const auto expect = [&](GrpoLossType type, double first, double second) {
    const at::Tensor expected =
        at::cat({at::full({2}, first, at::kDouble), at::full({8}, second, at::kDouble)});
    EXPECT_TRUE(testing::close(gradient(type), expected, {.atol = 1e-15}));
  };
  expect(GrpoLossType::grpo, -1. / 4, 1. / 16);
  expect(GrpoLossType::bnpo, -1. / 10, 1. / 10);
  expect(GrpoLossType::dapo, -1. / 10, 1. / 10);
  expect(GrpoLossType::dr_grpo, -1. / 32, 1. / 32);
}

// The same two completions as two micro-batches: only bnpo sees them.
TEST(GrpoLoss, SplitIntoMicroBatchesOnlyBnpoChanges) {
  const GrpoWindow window{.completions = 2, .tokens = 10, .micro_batches = 2};
  const GrpoCompletions all = two_and_eight();
  const auto sum = [&](GrpoLossType type) {
    GrpoCompletions first = all;
    first.logps = first.old_logps = all.logps.narrow(0, 0, 2);
    first.lengths = {2};
    first.advantages = {1};
    GrpoCompletions second = all;
    second.logps = second.old_logps = all.logps.narrow(0, 2, 8);
    second.lengths = {8};
    second.advantages = {-1};
    return loss_of(first, type, window) + loss_of(second, type, window);
  };
  EXPECT_NEAR(sum(GrpoLossType::grpo), 0, 1e-12);
  EXPECT_NEAR(sum(GrpoLossType::bnpo), (-2. / 2 + 8. / 8) / 2, 1e-12);
  EXPECT_NEAR(sum(GrpoLossType::dapo), .6, 1e-12);
  EXPECT_NEAR(sum(GrpoLossType::dr_grpo), 6. / 32, 1e-12);
}

// The one that was cut off leaves numerator and denominator; the number of completions stays.
TEST(GrpoLoss, ACompletionLeftOutLeavesItsTokensOutOfBothSides) {
  GrpoCompletions completions = two_and_eight();
  completions.counted = {1, 0};
  EXPECT_EQ(counted_tokens(completions), 2);
  const GrpoWindow window{.completions = 2, .tokens = 2, .micro_batches = 1};
  EXPECT_NEAR(loss_of(completions, GrpoLossType::grpo, window), -2. / 2 / 2, 1e-12);
  EXPECT_NEAR(loss_of(completions, GrpoLossType::bnpo, window), -2. / 2, 1e-12);
  EXPECT_NEAR(loss_of(completions, GrpoLossType::dapo, window), -2. / 2, 1e-12);
  EXPECT_NEAR(loss_of(completions, GrpoLossType::dr_grpo, window), -2. / 32, 1e-12);
}

// Its log-probabilities may be anything, even what would make the ratio infinite.
TEST(GrpoLoss, WhatIsLeftOutCannotSpoilTheGradient) {
  const at::Tensor gradient = autograd_of(
      [](const at::Tensor& logps) {
        GrpoCompletions completions = two_and_eight();
        completions.logps = logps;
        completions.old_logps = at::cat({at::full({2}, -1.5, at::kDouble),  //
                                         at::full({8}, -9999., at::kDouble)});
        completions.counted = {1, 0};
        return grpo_loss(completions, {}, {.completions = 2, .tokens = 2, .micro_batches = 1}).loss;
      },
      two_and_eight().logps);
  EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  EXPECT_EQ(gradient.count_nonzero().item<std::int64_t>(), 2);
}

TEST(GrpoLoss, WithNothingCountedTheLossIsZeroAndCanBeBackpropagated) {
  const at::Tensor gradient = autograd_of(
      [](const at::Tensor& logps) {
        GrpoCompletions completions = two_and_eight();
        completions.logps = logps;
        completions.counted = {0, 0};
        const GrpoLoss found = grpo_loss(completions, {.type = GrpoLossType::bnpo},
                                         {.completions = 2, .tokens = 0, .micro_batches = 1});
        EXPECT_EQ(found.totals.loss, 0);
        EXPECT_EQ(found.totals.mean_kl(), 0);
        EXPECT_EQ(found.totals.ratio_error(), 0);
        return found.loss;
      },
      two_and_eight().logps);
  EXPECT_EQ(gradient.count_nonzero().item<std::int64_t>(), 0);
}

// Four completions, one of them empty and one left out, whose ratios lie on all sides of the
// bounds.
struct Drawn {
  std::vector<std::int64_t> lengths{3, 0, 4, 2, 5};
  std::vector<double> advantages{1.2, -.4, -.7, 2.0, .5};
  std::vector<std::uint8_t> counted{1, 1, 1, 0, 1};
  std::vector<double> logps{-1.0, -2.0, -.5, -1.1, -3.0, -.2, -.9,
                            -4.,  -4.,  -.3, -2.2, -1.7, -.6, -.05};
  std::vector<double> old_logps{-1.4, -1.6, -.52, -.8,  -3.6,  -.21, -.95,
                                -1.,  -9.,  -.7,  -2.0, -1.75, -1.0, -.3};
  std::vector<double> reference{-1.1, -2.5, -.4,  -1.0, -2.0, -.3, -.9,
                                -3.,  -4.,  -.35, -2.6, -1.1, -.8, -.07};

  [[nodiscard]] GrpoCompletions completions(const at::Tensor& policy) const {
    return {.logps = policy,
            .old_logps = doubles(old_logps),
            .reference_logps = doubles(reference),
            .lengths = lengths,
            .advantages = advantages,
            .counted = counted};
  }
};

// The formulas once more, token by token in plain doubles.
double by_hand(const Drawn& drawn, const std::vector<double>& logps, const GrpoLossOptions& options,
               const GrpoWindow& window, GrpoTotals& totals) {
  double loss = 0;
  double micro_tokens = 0;
  for (std::size_t i = 0; i < drawn.lengths.size(); ++i) {
    if (drawn.counted[i] != 0) micro_tokens += static_cast<double>(drawn.lengths[i]);
  }
  std::size_t t = 0;
  for (std::size_t i = 0; i < drawn.lengths.size(); ++i) {
    double sum = 0;
    const double advantage = drawn.advantages[i];
    for (std::int64_t n = 0; n < drawn.lengths[i]; ++n, ++t) {
      if (drawn.counted[i] == 0) continue;
      const double rho = std::exp(logps[t] - drawn.old_logps[t]);
      const double low = 1 - options.epsilon_low;
      const double high = 1 + options.epsilon_high;
      const double inside = rho < low ? low : rho > high ? high : rho;
      const double gap = drawn.reference[t] - logps[t];
      const double k3 = std::exp(gap) - gap - 1;
      sum += -std::min(rho * advantage, inside * advantage) +
             options.beta * k3 * (options.kl_times_ratio ? rho : 1);
      totals.kl += k3;
      totals.clipped_low += rho < low && advantage < 0 ? 1 : 0;
      totals.clipped_high += rho > high && advantage > 0 ? 1 : 0;
      totals.ratio_min = std::min(totals.ratio_min, rho);
      totals.ratio_max = std::max(totals.ratio_max, rho);
    }
    if (drawn.counted[i] == 0 || drawn.lengths[i] == 0) continue;
    if (options.type == GrpoLossType::grpo) {
      loss += sum / static_cast<double>(drawn.lengths[i]) / window.completions;
    } else if (options.type == GrpoLossType::bnpo) {
      loss += sum / micro_tokens / window.micro_batches;
    } else if (options.type == GrpoLossType::dapo) {
      loss += sum / window.tokens;
    } else {
      loss += sum / (window.completions * static_cast<double>(options.max_completion_length));
    }
  }
  return loss;
}

TEST(GrpoLoss, EqualsTheFormulasTokenByToken) {
  const Drawn drawn;
  const GrpoWindow window{.completions = 8, .tokens = 31, .micro_batches = 2};
  for (const GrpoLossType type : all_types) {
    for (const double beta : {0.0, 0.04}) {
      for (const bool times_ratio : {false, true}) {
        const GrpoLossOptions options{.type = type,
                                      .epsilon_low = .2,
                                      .epsilon_high = .28,
                                      .beta = beta,
                                      .kl_times_ratio = times_ratio,
                                      .max_completion_length = 6};
        GrpoTotals expected;
        const double loss = by_hand(drawn, drawn.logps, options, window, expected);
        const GrpoLoss found = grpo_loss(drawn.completions(doubles(drawn.logps)), options, window);
        EXPECT_NEAR(found.loss.item<double>(), loss, 1e-13);
        EXPECT_NEAR(found.totals.loss, loss, 1e-13);
        EXPECT_EQ(found.totals.tokens, 12);
        EXPECT_NEAR(found.totals.kl, expected.kl, 1e-12);
        EXPECT_EQ(found.totals.clipped_low, expected.clipped_low);
        EXPECT_EQ(found.totals.clipped_high, expected.clipped_high);
        EXPECT_GT(expected.clipped_low, 0);
        EXPECT_GT(expected.clipped_high, 0);
        EXPECT_NEAR(found.totals.ratio_min, expected.ratio_min, 1e-14);
        EXPECT_NEAR(found.totals.ratio_max, expected.ratio_max, 1e-14);
        EXPECT_NEAR(found.totals.ratio_error(), expected.ratio_max - 1, 1e-14);
      }
    }
  }
}

TEST(GrpoLoss, GradientsEqualFiniteDifferences) {
  const Drawn drawn;
  const GrpoWindow window{.completions = 8, .tokens = 31, .micro_batches = 2};
  const at::Tensor x = doubles(drawn.logps);
  for (const GrpoLossType type : all_types) {
    for (const bool times_ratio : {false, true}) {
      const GrpoLossOptions options{.type = type,
                                    .epsilon_low = .2,
                                    .epsilon_high = .28,
                                    .beta = .04,
                                    .kl_times_ratio = times_ratio,
                                    .max_completion_length = 6};
      const at::Tensor expected = testing::finite_differences(
          [&](const at::Tensor& at) {
            const at::Tensor flat = at.contiguous();
            const double* values = flat.const_data_ptr<double>();
            GrpoTotals unused;
            return by_hand(drawn, {values, values + flat.numel()}, options, window, unused);
          },
          x);
      const at::Tensor found = autograd_of(
          [&](const at::Tensor& at) {
            return grpo_loss(drawn.completions(at), options, window).loss;
          },
          x);
      EXPECT_TRUE(testing::close(found, expected, {.atol = 1e-9, .rtol = 1e-8}));
    }
  }
}

TEST(GrpoLoss, TotalsOfMicroBatchesMerge) {
  GrpoTotals all{.tokens = 4,
                 .loss = .5,
                 .kl = 1,
                 .clipped_low = 1,
                 .clipped_high = 0,
                 .ratio_min = .7,
                 .ratio_max = 1.1,
                 .nearest_ratio_to_clip_bound = .1};
  all += GrpoTotals{};  // a micro-batch with nothing counted
  EXPECT_EQ(all.ratio_min, .7);
  all += {.tokens = 6,
          .loss = -.25,
          .kl = 4,
          .clipped_low = 0,
          .clipped_high = 2,
          .ratio_min = .9,
          .ratio_max = 1.6,
          .nearest_ratio_to_clip_bound = .02};
  EXPECT_EQ(all.loss, .25);
  EXPECT_EQ(all.mean_kl(), .5);
  EXPECT_EQ(all.clip_fraction(), .3);
  EXPECT_NEAR(all.ratio_error(), .6, 1e-15);
  EXPECT_EQ(all.nearest_ratio_to_clip_bound, .02);
}

TEST(GrpoLoss, SettingsAndSizesThatDoNotFitAreRefused) {
  EXPECT_NE(error_of([] { check(GrpoLossOptions{.epsilon_low = 1}); }).find("lower epsilon"),
            std::string::npos);
  EXPECT_NE(error_of([] { check(GrpoLossOptions{.beta = -1}); }).find("beta"), std::string::npos);
  EXPECT_NE(error_of([] {
              check(GrpoLossOptions{.type = GrpoLossType::dr_grpo});
            }).find("max_completion_length"),
            std::string::npos);
  const GrpoWindow window{.completions = 2, .tokens = 10, .micro_batches = 1};
  EXPECT_NE(
      error_of([&] { return grpo_loss(two_and_eight(), {.beta = .1}, window); }).find("reference"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              return grpo_loss(two_and_eight(), {},
                               {.completions = 2, .tokens = 9, .micro_batches = 1});
            }).find("window"),
            std::string::npos);
  GrpoCompletions uneven = two_and_eight();
  uneven.lengths = {2, 7};
  EXPECT_NE(error_of([&] { return grpo_loss(uneven, {}, window); }).find("differ in number"),
            std::string::npos);
}

}  // namespace
}  // namespace onset
