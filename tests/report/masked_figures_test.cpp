// The pictures of what a mask changes: both runs' numbers, their difference, and what captions say.
#include "onset/report/masked_figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onset::testing {
namespace {

PromptScan prompt_of(const std::vector<float>& largest) {
  PromptScan prompt;
  for (std::size_t l = 0; l < largest.size(); ++l) {
    LayerStatistics layer;
    layer.layer = static_cast<std::int64_t>(l);
    layer.largest.value = largest[l];
    layer.median_abs = 0.5F;
    prompt.layers.push_back(layer);
  }
  prompt.me_layer = 1;
  prompt.last_massive_layer = 1;
  return prompt;
}

SinksResult sinks_of(const std::vector<std::vector<double>>& alpha, std::vector<double> rate) {
  SinksResult result;
  result.summary.head_alpha = alpha;
  result.summary.layer_rate = std::move(rate);
  for (const auto& heads : alpha) {
    result.summary.layer_alpha.push_back((heads[0] + heads[1]) / 2);
  }
  return result;
}

class MaskedFigures : public ::testing::Test {
 protected:
  PromptScan unmasked_ = prompt_of({3, -2000, 1000});
  PromptScan masked_ = prompt_of({3, -2000, 1100});
  SinksResult sinks_ = sinks_of({{0, 0.1}, {0.2, 0.5}, {0.9, 0.4}}, {0, 0.5, 1});
  SinksResult masked_sinks_ = sinks_of({{0, 0.1}, {0.2, 0.5}, {0.6, 0.5}}, {0, 0.5, 0.75});
  MaskedFiguresInput input_{.unmasked = unmasked_,
                            .masked = masked_,
                            .from_layer = 2,
                            .sinks = &sinks_,
                            .masked_sinks = &masked_sinks_,
                            .windows = {0, 0, 0}};
};

TEST_F(MaskedFigures, LinesAreOfBothRuns) {
  const Figure figure = masked_layers_figure(input_);
  EXPECT_EQ(figure.data["first"],
            OrderedJson::array({"Sink rate", "Mean alpha", "Largest |x|", "Median |x|"}));
  const auto& rate = figure.data["plots"][0][0]["series"];
  EXPECT_EQ(rate[0]["name"], "unmasked");
  EXPECT_EQ(rate[0]["values"], OrderedJson::array({0.0, 0.5, 1.0}));
  EXPECT_EQ(rate[1]["name"], "masked");
  EXPECT_EQ(rate[1]["values"], OrderedJson::array({0.0, 0.5, 0.75}));
  const auto& largest = figure.data["plots"][2][0];
  EXPECT_EQ(largest["logarithmic"], true);
  EXPECT_EQ(largest["series"][1]["values"], OrderedJson::array({3.0, 2000.0, 1100.0}));
  EXPECT_NE(figure.see.find("sink rate differs most in layer 2: 1 without the mask, 0.75 with it"),
            std::string::npos)
      << figure.see;
  EXPECT_NE(figure.see.find("largest entry differs most, for its size, in layer 2"),
            std::string::npos)
      << figure.see;
  EXPECT_NE(figure.see.find("begins in layer 2"), std::string::npos);
  EXPECT_EQ(figure.data["me_layer"], 1);
}

TEST_F(MaskedFigures, HeadsHaveTheDifference) {
  const Figure figure = masked_heads_figure(input_);
  const auto& views = figure.data["views"];
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(views[0]["signed"], true);
  EXPECT_EQ(views[0]["values"][2], OrderedJson::array({-0.3, 0.1}));
  EXPECT_EQ(views[1]["values"][2], OrderedJson::array({0.9, 0.4}));
  EXPECT_EQ(views[2]["values"][2], OrderedJson::array({0.6, 0.5}));
}

TEST_F(MaskedFigures, WithoutSinksAndRigidityThereAreMagnitudesAlone) {
  const auto figures = masked_figures({.unmasked = unmasked_, .masked = unmasked_});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_NE(figures.front().see.find("the same in every layer"), std::string::npos);
}

}  // namespace
}  // namespace onset::testing
