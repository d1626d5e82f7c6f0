// The routing rules against a scalar form of them written from the papers and the models' code.
#include "onset/model/routing.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace onset::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

using Row = std::vector<double>;

struct Chosen {
  std::vector<std::int64_t> experts;
  Row weights;
};

Row scores_of(const Row& logits, RouterScore kind) {
  Row scores;
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (const double logit : logits) {
    scores.push_back(kind == RouterScore::sigmoid ? 1.0 / (1.0 + std::exp(-logit))
                                                  : std::exp(logit) / sum);
  }
  return scores;
}

// The index of the largest, the first of equals.
std::size_t best_of(const Row& values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// Takes the best one after the other. Groups: by the sum of the best two (sigmoid) or by the best.
Chosen by_hand(const Row& logits, const MixtureConfig& mixture, const Row& bias) {
  const Row scores = scores_of(logits, mixture.score);
  Row candidates = scores;
  for (std::size_t e = 0; e < bias.size(); ++e) candidates[e] += bias[e];
  const auto groups = static_cast<std::size_t>(mixture.groups);
  const std::size_t size = candidates.size() / groups;
  Row merits;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto begin = candidates.begin() + static_cast<std::ptrdiff_t>(g * size);
    Row members(begin, begin + static_cast<std::ptrdiff_t>(size));
    std::sort(members.rbegin(), members.rend());
    const bool two = mixture.score == RouterScore::sigmoid && size > 1;
    merits.push_back(two ? members[0] + members[1] : members[0]);
  }
  std::vector<bool> open(groups, false);
  for (std::int64_t i = 0; i < mixture.chosen_groups; ++i) {
    const std::size_t best = best_of(merits);
    open[best] = true;
    merits[best] = -infinity;
  }
  for (std::size_t e = 0; e < candidates.size(); ++e) {
    if (!open[e / size]) candidates[e] = -infinity;
  }
  Chosen chosen;
  for (std::int64_t i = 0; i < mixture.chosen; ++i) {
    const std::size_t best = best_of(candidates);
    chosen.experts.push_back(static_cast<std::int64_t>(best));
    candidates[best] = -infinity;
  }
  std::sort(chosen.experts.begin(), chosen.experts.end());
  double sum = 0;
  for (const std::int64_t e : chosen.experts) sum += scores[static_cast<std::size_t>(e)];
  for (const std::int64_t e : chosen.experts) {
    const double weight = scores[static_cast<std::size_t>(e)];
    chosen.weights.push_back((mixture.normalised ? weight / sum : weight) * mixture.scale);
  }
  return chosen;
}

class RoutingTest : public ::testing::Test {
 protected:
  // Of one token.
  static Chosen routed(const Row& logits, const MixtureConfig& mixture, const Row& bias = {}) {
    const at::Tensor row = at::tensor(logits).unsqueeze(0);
    const Routing routing = route(row, mixture, bias.empty() ? at::Tensor() : at::tensor(bias));
    Chosen chosen;
    for (std::int64_t i = 0; i < mixture.chosen; ++i) {
      chosen.experts.push_back(routing.experts[0][i].item<std::int64_t>());
      chosen.weights.push_back(routing.weights[0][i].item<double>());
    }
    return chosen;
  }
  static void expect_as_by_hand(const Row& logits, const MixtureConfig& mixture,
                                const Row& bias = {}) {
    const Chosen expected = by_hand(logits, mixture, bias);
    const Chosen found = routed(logits, mixture, bias);
    EXPECT_EQ(found.experts, expected.experts);
    for (std::size_t i = 0; i < expected.weights.size(); ++i) {
      EXPECT_NEAR(found.weights[i], expected.weights[i], 1e-12);
    }
  }

  c10::InferenceMode inference_;
};

TEST_F(RoutingTest, EveryRuleOnRandomLogits) {
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    for (const auto& [groups, kept, chosen] :
         {std::tuple{1, 1, 1}, std::tuple{1, 1, 3}, std::tuple{1, 1, 12}, std::tuple{4, 2, 3},
          std::tuple{4, 1, 3}, std::tuple{3, 3, 5}, std::tuple{12, 4, 4}}) {
      for (const bool normalised : {false, true}) {
        for (const bool biased : {false, true}) {
          const MixtureConfig mixture{.experts = 12,
                                      .chosen = chosen,
                                      .score = score,
                                      .groups = groups,
                                      .chosen_groups = kept,
                                      .normalised = normalised,
                                      .scale = 2.5};
          for (int draw = 0; draw < 20; ++draw) {
            const at::Tensor drawn = at::randn({2, 12}, at::kDouble);
            const auto row = [&](std::int64_t i) {
              const auto* from = drawn.const_data_ptr<double>() + 12 * i;
              return Row(from, from + 12);
            };
            expect_as_by_hand(row(0), mixture, biased ? row(1) : Row());
          }
        }
      }
    }
  }
}

TEST_F(RoutingTest, HandValues) {
  // Probabilities 1/6, 1/3, 1/2.
  const Row logits{0.0, std::log(2.0), std::log(3.0)};
  MixtureConfig mixture{.experts = 3, .chosen = 2};
  Chosen chosen = routed(logits, mixture);
  EXPECT_EQ(chosen.experts, (std::vector<std::int64_t>{1, 2}));
  EXPECT_NEAR(chosen.weights[0], 1.0 / 3.0, 1e-12);
  mixture.normalised = true;
  mixture.scale = 10.0;
  chosen = routed(logits, mixture);
  EXPECT_NEAR(chosen.weights[0], 4.0, 1e-12);
  EXPECT_NEAR(chosen.weights[1], 6.0, 1e-12);
}

TEST_F(RoutingTest, TheCorrectionBiasCountsForTheChoiceAlone) {
  const MixtureConfig mixture{.experts = 3, .chosen = 1, .score = RouterScore::sigmoid};
  const Chosen chosen = routed({2.0, 0.0, -2.0}, mixture, {0.0, 0.0, 5.0});
  EXPECT_EQ(chosen.experts, (std::vector<std::int64_t>{2}));
  EXPECT_NEAR(chosen.weights[0], 1.0 / (1.0 + std::exp(2.0)), 1e-12);
}

TEST_F(RoutingTest, AGroupIsAsGoodAsItsBestOrItsTwoBest) {
  // Two groups of two: the first has the best expert, the second the better pair.
  const Row logits{3.0, -3.0, 1.0, 1.0};
  MixtureConfig mixture{.experts = 4, .chosen = 1, .groups = 2, .chosen_groups = 1};
  EXPECT_EQ(routed(logits, mixture).experts, (std::vector<std::int64_t>{0}));
  mixture.score = RouterScore::sigmoid;
  EXPECT_EQ(routed(logits, mixture).experts, (std::vector<std::int64_t>{2}));
}

TEST_F(RoutingTest, TiesGoToTheLowerIndex) {
  const Row equal(6, 0.5);
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    MixtureConfig mixture{.experts = 6, .chosen = 2, .score = score};
    EXPECT_EQ(routed(equal, mixture).experts, (std::vector<std::int64_t>{0, 1}));
    mixture.groups = 3;
    mixture.chosen_groups = 1;
    EXPECT_EQ(routed(equal, mixture).experts, (std::vector<std::int64_t>{0, 1}));
    EXPECT_EQ(routed({0, 1, 0, 1, 0, 1}, mixture).experts, (std::vector<std::int64_t>{0, 1}));
  }
  EXPECT_EQ(routed({1, 7, 3, 7, 7, 0}, {.experts = 6, .chosen = 2}).experts,
            (std::vector<std::int64_t>{1, 3}));
}

TEST_F(RoutingTest, AllExpertsMayBeChosen) {
  const Chosen chosen = routed({0.3, -1.0, 2.0}, {.experts = 3, .chosen = 3});
  EXPECT_EQ(chosen.experts, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_NEAR(chosen.weights[0] + chosen.weights[1] + chosen.weights[2], 1.0, 1e-12);
}

TEST_F(RoutingTest, AnExpertOfMinusInfinityIsNotChosen) {
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    const MixtureConfig mixture{.experts = 3, .chosen = 2, .score = score, .normalised = true};
    // Not even for its bias.
    const Chosen chosen = routed({0.0, -infinity, -9.0}, mixture, {0.0, 100.0, 0.0});
    EXPECT_EQ(chosen.experts, (std::vector<std::int64_t>{0, 2}));
    EXPECT_NEAR(chosen.weights[0] + chosen.weights[1], 1.0, 1e-12);
  }
  // Where too few others are left, it has no weight.
  const Chosen few = routed({-infinity, 1.0, -infinity}, {.experts = 3, .chosen = 2});
  EXPECT_EQ(few.experts, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(few.weights[0], 0.0);
  EXPECT_EQ(few.weights[1], 1.0);
}

// By its two best: what is left of a group still competes when one of it is switched off.
TEST_F(RoutingTest, AGroupOutlivesAnExpertThatIsSwitchedOff) {
  const MixtureConfig mixture{
      .experts = 4, .chosen = 1, .score = RouterScore::sigmoid, .groups = 2, .chosen_groups = 1};
  EXPECT_EQ(routed({-infinity, 5.0, -5.0, -5.0}, mixture).experts, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(routed({-infinity, -infinity, -5.0, -5.0}, mixture).experts,
            (std::vector<std::int64_t>{2}));
}

TEST_F(RoutingTest, NanIsNeverPreferredAndBreaksNothing) {
  const double nan = std::nan("");
  for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
    for (const std::int64_t groups : {1, 2}) {
      const MixtureConfig mixture{
          .experts = 4, .chosen = 2, .score = score, .groups = groups, .chosen_groups = 1};
      const Chosen all = routed({nan, nan, nan, nan}, mixture);
      EXPECT_EQ(all.experts, (std::vector<std::int64_t>{0, 1}));
      EXPECT_TRUE(std::isnan(all.weights[0]));
    }
  }
  EXPECT_EQ(routed({nan, 0.0, 1.0, 2.0}, {.experts = 4, .chosen = 2, .score = RouterScore::sigmoid})
                .experts,
            (std::vector<std::int64_t>{2, 3}));
}

TEST_F(RoutingTest, TokensAreGroupedByExpert) {
  const at::Tensor experts = at::tensor({0, 3, 1, 3, 0, 1}, at::kLong).view({3, 2});
  const auto groups = group_by_expert(experts, 5);
  ASSERT_EQ(groups.size(), 3U) << "2 and 4 have no token";
  EXPECT_EQ(groups[0].expert, 0);
  EXPECT_EQ(groups[0].rows, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(groups[0].slots, (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(groups[2].expert, 3);
  EXPECT_EQ(groups[2].rows, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(groups[2].slots, (std::vector<std::int64_t>{1, 3}));
  EXPECT_THROW(static_cast<void>(group_by_expert(experts, 3)), std::logic_error);
}

}  // namespace
}  // namespace onset::testing
