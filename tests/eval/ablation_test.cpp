// The grid of an ablation, its rows, and the control of equal energy.

#include "onset/eval/ablation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "onset/eval/energy_control.h"
#include "onset/model/config.h"
#include "onset/model/model.h"
#include "onset/wemask/mask_effect.h"
#include "support/support.h"

namespace onset {
namespace {

AblationGrid small_grid() {
  return {.arms = {AblationArm::weight, AblationArm::random},
          .rates = {0.1, 0.5},
          .ks = {},
          .from_layers = {3, 4},
          .gammas = {1.0},
          .placements = {MaskPlacement::post_norm},
          .tokens = {MaskTokens::first},
          .seeds = 3};
}

TEST(AblationGrid, IsAllCombinations) {
  const auto grid = small_grid();
  const auto points = points_of(grid);
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[1].rate, 0.5);
  EXPECT_EQ(points[1].from_layer, 3);
  EXPECT_EQ(points[2].rate, 0.1);
  EXPECT_EQ(points[2].from_layer, 4);
  const auto settings = settings_of(grid);
  ASSERT_EQ(settings.size(), 8U);
  EXPECT_EQ(settings[0].seeds, std::vector<std::uint64_t>{0});
  EXPECT_EQ(settings[1].seeds, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(settings[7].point, 3U);
  EXPECT_EQ(setting_name(grid, points[2], AblationArm::random), "random, rate 0.1, from layer 4");
  auto by_k = grid;
  by_k.ks = {58};
  EXPECT_EQ(points_of(by_k).size(), 2U);
  EXPECT_EQ(points_of(by_k)[0].k, 58);
  EXPECT_FALSE(points_of(by_k)[0].rate);
  EXPECT_EQ(parse_arm("random_energy"), AblationArm::random_energy);
  EXPECT_NE(testing::error_of([] { static_cast<void>(parse_arm("wieght")); }).find("known are"),
            std::string::npos);
}

// Before the scan that finds the first layer, which takes minutes on a large model.
TEST(AblationGrid, IsCheckedWithoutAFirstLayer) {
  ModelConfig config;
  config.hidden = 64;
  config.layers.resize(4);
  auto grid = small_grid();
  grid.from_layers.clear();
  const auto error = [&] { return testing::error_of([&] { check_grid(grid, config); }); };
  EXPECT_NO_THROW(check_grid(grid, config));
  grid.rates = {0.1, 1.5};
  EXPECT_EQ(error(), "rate is 1.5, expected above 0, up to 1");
  grid.rates = {0.01};
  EXPECT_NE(error().find("is less than one dim"), std::string::npos) << error();
  grid.ks = {65};
  EXPECT_EQ(error(), "k is 65, expected 1 to 64, the hidden size");
  grid.ks = {64};
  EXPECT_NO_THROW(check_grid(grid, config));
  grid.from_layers = {3, 4};
  EXPECT_EQ(error(), "the first masked layer is 4, but the model has layers 0 to 3");
  grid.from_layers = {3};
  grid.gammas = {0.5, 5};
  EXPECT_EQ(error(), "gamma is 5, expected 0 to 1");
}

ScoreColumn column(const std::vector<double>& values) {
  return {.task = "t", .metric = "acc", .values = values, .weights = {}};
}

TEST(AblationRows, RandomMasksCountByTheirMeanAndControlsArePaired) {
  auto grid = small_grid();
  grid.rates = {0.1};
  grid.from_layers = {3};
  grid.seeds = 2;
  const auto settings = settings_of(grid);
  const std::vector<ScoreColumn> baseline{column({1, 1, 0, 0, 1, 0})};
  // weight: two better, none worse. random: one mask loses an item, the other wins one.
  const std::vector<std::vector<std::vector<ScoreColumn>>> conditions{
      {{column({1, 1, 1, 1, 1, 0})}}, {{column({0, 1, 0, 0, 1, 0})}, {column({1, 1, 0, 0, 1, 1})}}};
  const auto rows = ablation_rows(settings, baseline, conditions, {});
  ASSERT_EQ(rows.size(), 2U);
  const auto& weight = rows[0].scores[0];
  ASSERT_TRUE(weight.result);
  EXPECT_TRUE(weight.result->binary);
  EXPECT_NEAR(weight.result->difference, 2.0 / 6, 1e-15);
  EXPECT_NEAR(weight.result->p, 0.5, 1e-12);
  EXPECT_NEAR(weight.holm_p, 1, 1e-12);
  EXPECT_FALSE(weight.range);
  ASSERT_TRUE(weight.against_random);
  // weight less the mean of random: 1 - .5, 0, 1, 1, 0, 0 - .5.
  EXPECT_NEAR(weight.against_random->difference, 2.0 / 6, 1e-15);
  // Signs of (.5, 1, 1, -.5): |sum| >= 2 for sums 3, 2, 2 and their opposites: 6 of 16.
  EXPECT_NEAR(weight.against_random->p, 6.0 / 16, 1e-12);
  EXPECT_NEAR(weight.random_holm_p, 6.0 / 16, 1e-12) << "the only test against a control";
  EXPECT_FALSE(weight.against_energy);
  const auto& random = rows[1].scores[0];
  EXPECT_NEAR(random.result->difference, 0, 1e-15);
  EXPECT_FALSE(random.result->binary);
  ASSERT_TRUE(random.range);
  EXPECT_NEAR(random.range->low, -1.0 / 6, 1e-15);
  EXPECT_NEAR(random.range->high, 1.0 / 6, 1e-15);
  EXPECT_FALSE(random.against_random);
}

TEST(AblationRows, ItemsWithoutAScoreAreLeftOut) {
  const auto result =
      compare_columns(column({1, std::nan(""), 0}), column({0, 1, std::nan("")}), {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->n, 1);
  EXPECT_EQ(result->difference, -1);
  EXPECT_FALSE(compare_columns(column({std::nan("")}), column({1}), {}));
}

TEST(EnergyControl, DimsAddUpToTheTargetWhereverThatCanBe) {
  // 100 dims whose shares fall as 1 / (d + 1).
  std::vector<double> shares;
  for (int d = 0; d < 100; ++d) shares.push_back(1.0 / (d + 1));
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  for (const double target : {0.05, 0.1, 0.3, 0.6}) {
    std::set<std::vector<std::int64_t>> seen;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const auto dims = energy_matched_dims(shares, 20, target, seed, 7);
      ASSERT_EQ(dims.size(), 20U);
      EXPECT_EQ(std::set(dims.begin(), dims.end()).size(), 20U);
      double sum = 0;
      for (const auto dim : dims) sum += shares.at(static_cast<std::size_t>(dim));
      EXPECT_NEAR(sum, target, energy_tolerance) << "seed " << seed;
      EXPECT_EQ(dims, energy_matched_dims(shares, 20, target, seed, 7));
      seen.insert(dims);
    }
    EXPECT_EQ(seen.size(), 5U);
  }
  // More than the 20 largest hold: they are the nearest.
  auto dims = energy_matched_dims(shares, 20, 1.0, 0, 7);
  std::sort(dims.begin(), dims.end());
  std::vector<std::int64_t> largest(20);
  std::iota(largest.begin(), largest.end(), 0);
  EXPECT_EQ(dims, largest);
  EXPECT_EQ(energy_matched_dims(shares, 100, 0.5, 0, 7).size(), 100U);
}

// As mask_effect() measures it, which runs the model under each mask.
TEST(EnergyControl, TakesAwayWhatTheMaskTakes) {
  const auto model = Model::open(testing::data("models/llama_me"));
  const std::vector<std::vector<std::int64_t>> prompts{{1, 17, 9, 33}, {5, 2, 8}};
  const auto mask = make_mask(model, {.rate = 0.25, .from_layer = 1, .to_layer = 1});
  const auto control = energy_control(model, mask, prompts, 3);
  EXPECT_EQ(control.k, mask.k);
  EXPECT_EQ(control.criterion, MaskCriterion::given);
  ASSERT_EQ(control.dims.at(1).size(), mask.dims.at(1).size());
  EXPECT_NE(control.dims, mask.dims);
  const auto wanted = mask_effect(model, mask, prompts);
  const auto found = mask_effect(model, control, prompts);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tokens, 2);
  EXPECT_NEAR(found[0].energy_removed, wanted[0].energy_removed, 0.01);
}

}  // namespace
}  // namespace onset
