// The pictures of an ablation draw what was measured.
#include "onset/report/ablation_figures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onset::testing {
namespace {

ScoreColumn shares(const std::vector<double>& values) {
  return {.task = "quiz", .metric = "acc", .values = values, .weights = {}};
}

ScoreColumn windows(const std::vector<double>& values) {
  return {.task = "text",
          .metric = "nll",
          .is_nll = true,
          .higher_is_better = false,
          .values = values,
          .weights = {10, 10}};
}

AblationResult small_result() {
  AblationResult result;
  result.grid = {.arms = {AblationArm::weight, AblationArm::random},
                 .rates = {0.5, 0.25},
                 .ks = {},
                 .from_layers = {12},
                 .gammas = {1.0},
                 .placements = {MaskPlacement::post_norm},
                 .tokens = {MaskTokens::first},
                 .seeds = 1};
  result.points = points_of(result.grid);
  result.baseline = {shares({1, 1, 0, 0}), windows({30, 34})};
  const std::vector<ScoreColumn> better{shares({1, 1, 1, 0}), windows({28, 32})};
  const std::vector<ScoreColumn> same = result.baseline;
  const auto settings = settings_of(result.grid);
  const std::vector<std::vector<std::vector<ScoreColumn>>> conditions{
      {better}, {same}, {same}, {same}};
  result.rows = ablation_rows(settings, result.baseline, conditions, {});
  result.measures.assign(4, {.sink_rate = 0.4, .energy_removed = 0.25});
  result.measures[0].sink_rate = 0.3;
  result.baseline_sink_rate = 0.5;
  return result;
}

TEST(AblationFigures, LinesAreScoresOverTheRate) {
  const auto figure = ablation_score_figure(small_result());
  ASSERT_EQ(figure.data["columns"].size(), 2U);
  EXPECT_EQ(figure.data["size"], "rate");
  EXPECT_EQ(figure.data["views"], OrderedJson::parse(R"(["layers from 12"])"));
  const auto& quiz = figure.data["columns"][0];
  EXPECT_EQ(quiz["name"], "quiz, acc");
  EXPECT_EQ(quiz["unit"], "acc, percent");
  EXPECT_EQ(quiz["baseline"], 50.0);
  const auto& series = quiz["views"]["layers from 12"];
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0]["random"], false);
  const auto& point = series[0]["points"][0];
  EXPECT_EQ(point["x"], 0.5);
  EXPECT_EQ(point["y"], 75.0);
  EXPECT_LE(point["low"].get<double>(), 75.0);
  EXPECT_GE(point["high"].get<double>(), 75.0);
  // Perplexity of 64 nats in 20 tokens, and of 60.
  const auto& text = figure.data["columns"][1];
  EXPECT_EQ(text["unit"], "perplexity");
  EXPECT_NEAR(text["baseline"].get<double>(), std::exp(3.2), 1e-4);
  EXPECT_NEAR(text["views"]["layers from 12"][0]["points"][0]["y"].get<double>(), std::exp(3.0),
              1e-4);
  EXPECT_NE(figure.see.find("Of 4 settings 0 are better and 0 are worse"), std::string::npos)
      << figure.see;
}

TEST(AblationFigures, SinksAreBesideTheScores) {
  const auto figure = ablation_sink_figure(small_result());
  EXPECT_EQ(figure.data["baseline_sinks"], 50.0);
  const auto& point = figure.data["columns"][0]["series"][0]["points"][0];
  EXPECT_EQ(point["x"], 30.0);
  EXPECT_EQ(point["name"], "weight, rate 0.5");
  EXPECT_NE(figure.see.find("50 % of the heads"), std::string::npos) << figure.see;
  EXPECT_NE(figure.see.find("30 to 40 %"), std::string::npos) << figure.see;
}

}  // namespace
}  // namespace onset::testing
