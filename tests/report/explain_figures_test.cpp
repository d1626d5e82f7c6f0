// The pictures of an explanation draw what was measured: sums, shares and captions follow from the
// numbers, in dense models and in a mixture with a planted super expert.
#include "onset/report/explain_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onset/model/model.h"
#include "support/super_expert.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

const std::map<std::int64_t, std::string> no_pieces;

ExplainFiguresInput input_of(const ExplainResult& result) {
  return {.result = result, .layers = 3, .token = "token 0", .pieces = no_pieces};
}

double sum_of(const OrderedJson& bars) {
  double sum = 0;
  for (const auto& bar : bars) sum += bar["value"].get<double>();
  return sum;
}

ExplainResult explain_exact_parts(const Model& model, const std::vector<std::int64_t>& ids) {
  ScanOptions scan_options;
  scan_options.min_ratio = 300;
  const auto found = scan(model, {{"", ids}}, scan_options);
  ExplainOptions options;
  options.parts.factorial = options.parts.vocabulary = options.parts.dose = false;
  return explain(model, found, choose_target(model, found, options), std::nullopt, options);
}

class MixtureFigures : public ::testing::TestWithParam<const char*> {};

TEST_P(MixtureFigures, NeuronsAndExpertsSumToTheFfn) {
  const SuperExpertModel planted(GetParam());
  const auto result = explain_exact_parts(Model::open(planted.path()), planted_prompt);
  const auto figures = neuron_figures(input_of(result));
  ASSERT_EQ(figures.size(), 1U);
  const auto& entry = figures[0].data["entries"][0];
  EXPECT_EQ(entry["layer"], planted_layer);
  EXPECT_EQ(entry["dim"], planted_dim);
  const double ffn_out = entry["ffn_out"].get<double>();
  EXPECT_NEAR(sum_of(entry["neurons"]), ffn_out, 1e-5 * std::fabs(ffn_out));
  EXPECT_NEAR(sum_of(entry["modules"]), ffn_out, 1e-5 * std::fabs(ffn_out));
  ASSERT_GT(entry["modules"].size(), 1U);
  const std::string expert = "expert " + std::to_string(planted.expert());
  const auto bar = std::find_if(entry["modules"].begin(), entry["modules"].end(),
                                [&](const auto& module) { return module["name"] == expert; });
  ASSERT_NE(bar, entry["modules"].end());
  EXPECT_NEAR((*bar)["value"].get<double>(), planted.adds(), 1e-4 * planted.adds());
  EXPECT_EQ(entry["neurons"][0]["name"].get<std::string>().substr(0, expert.size()), expert);
  EXPECT_NE(figures[0].read.find("By expert"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Mixtures, MixtureFigures,
                         ::testing::Values("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// The share of the k largest squares, by sorting them.
TEST(NormFigures, EnergyIsTheShareOfTheLargestSquares) {
  const ReferenceTensors reference(data("models/llama_me/reference.safetensors"));
  const auto result =
      explain_exact_parts(Model::open(data("models/llama_me")), reference.ids("input_ids.b"));
  const auto figures = norm_figures(input_of(result));
  ASSERT_EQ(figures.size(), 2U);
  const auto& energy = figures[1].data;
  const auto& norm = *result.norm->ffn_norm;
  const auto expect_curve = [&](const OrderedJson& curve, const std::vector<float>& values) {
    std::vector<double> squares;
    for (const float x : values) squares.push_back(static_cast<double>(x) * x);
    std::sort(squares.rbegin(), squares.rend());
    const double all = std::accumulate(squares.begin(), squares.end(), 0.0);
    for (std::size_t i = 0; i < curve.size(); ++i) {
      const auto k = energy["dims"][i].get<std::ptrdiff_t>();
      const double part = std::accumulate(squares.begin(), squares.begin() + k, 0.0);
      EXPECT_NEAR(curve[i].get<double>(), part / all, 1e-5) << "k = " << k;
    }
  };
  expect_curve(energy["before"], norm.x);
  expect_curve(energy["after"], norm.product);
  const auto& points = energy["points"];
  for (std::size_t i = 0; i < points["dim"].size(); ++i) {
    const auto dim = points["dim"][i].get<std::size_t>();
    EXPECT_NEAR(points["gain"][i].get<double>() * points["x_hat"][i].get<double>(),
                norm.product[dim], 2e-4 * std::fabs(norm.product[dim]) + 1e-7);
  }
}

// M = 1000, 100, 50, 20: log(1000) - log(100) - log(50) + log(20) = log 4.
ExplainResult with_factorial() {
  ExplainResult result;
  auto& found = result.factorial.emplace();
  found.layer = 3;
  const auto add = [&](double a, FfnChange ffn, double m) {
    auto& cell = found.cells.emplace_back();
    cell.a = a;
    cell.ffn = ffn;
    cell.at_layer = m;
    cell.later = 0.9 * m;
  };
  add(1.0, FfnChange::as_is, 1000);
  add(1.0, FfnChange::normalised, 100);
  add(0.0, FfnChange::as_is, 50);
  add(0.0, FfnChange::normalised, 20);
  found.interactions = {{.a = 0.0, .ffn = FfnChange::normalised, .value = std::log(4.0)}};
  return result;
}

TEST(FactorialFigure, CaptionHasTheCellsAndTheFactor) {
  const auto result = with_factorial();
  const auto figures = factorial_figures(input_of(result));
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].see,
            "As it is, the largest |x| after layer 3 is 1000; with the gain flattened 50; with the "
            "FFN's product normalised 100; with both 20. The interaction of these two is 1.386, a "
            "factor of 4.");
  const auto& table = figures[0].tables.at(0);
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[3], (std::vector<std::string>{"flattened", "product normalised", "20", "0",
                                                     "18", "", "", "1.386"}));
  EXPECT_EQ(figures[0].data["cells"][1]["label"], "product normalised");
}

TEST(VocabularyFigure, CaptionHasTheShareAndTheTableTheSmallOnes) {
  ExplainResult result;
  auto& found = result.vocabulary.emplace();
  found.layer = 2;
  found.threshold = 500;
  found.tokens = 8;
  found.massive = 6;
  found.levels = {0, 0.5, 1};
  found.quantiles = {3, 700, 900};
  found.edges = {0, 1, 2, 3};
  found.counts = {1, 1, 6};
  found.small = {{.id = 5, .largest = 3, .dim = 1}, {.id = 6, .largest = 20, .dim = 2}};
  const std::map<std::int64_t, std::string> pieces{{5, "abc"}, {6, std::string(40, 'y')}};
  const auto figures =
      vocabulary_figures({.result = result, .layers = 3, .token = "token 0", .pieces = pieces});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].see,
            "Alone at position 0, 6 of 8 vocabulary entries (75 %) have an entry above 500 after "
            "layer 2; the median is 700.");
  const auto& rows = figures[0].tables.at(0).rows;
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"5", "3", "1", "abc"}));
  EXPECT_EQ(rows[1][3].substr(0, 23), std::string(23, 'y'));
  EXPECT_EQ(figures[0].data["counts"], OrderedJson::array({1, 1, 6}));
}

// Sink rates by layer .1, .2, .4, .6; layer 1 is edited, so after it they are .5 on average.
TEST(DoseFigure, RatesAreMeansOfTheLayersAfter) {
  ExplainResult result;
  auto& found = result.dose.emplace();
  found.layer = 1;
  found.control_dim = 9;
  found.control_position = 4;
  const auto add = [&](const std::string& name, std::optional<double> dose, double factor) {
    DoseCondition condition;
    condition.name = name;
    condition.dose = dose;
    condition.text.perplexity = 20 / factor;
    condition.text.sinks.layer_rate = {0.1, 0.2, 0.4 * factor, 0.6 * factor};
    found.conditions.push_back(condition);
  };
  add("dose", 1.0, 1);
  add("dose", 0.5, 0.8);
  add("dose", 0.0, 0.1);
  add("mean", std::nullopt, 1);
  add("control_dim", std::nullopt, 1);
  add("control_token", std::nullopt, 1);
  const auto figures = dose_figures(input_of(result));
  ASSERT_EQ(figures.size(), 1U);
  const auto& conditions = figures[0].data["conditions"];
  const std::vector<std::string> labels{"as it is",        "times 0.5",      "set to 0",
                                        "set to the mean", "control: dim 9", "control: token 4"};
  for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(conditions[i]["label"], labels[i]);
  EXPECT_DOUBLE_EQ(conditions[0]["rate_behind"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(conditions[1]["rate_behind"].get<double>(), 0.4);
  EXPECT_EQ(
      figures[0].see,
      "In the layers after layer 1, as it is: sink rate 50 %, perplexity 20. With the massive "
      "entries set to 0: sink rate 5 %, perplexity 200; to their mean: sink rate 50 %, perplexity "
      "20. "
      "Control, dim 9 set to 0: sink rate 50 %, perplexity 20.");
}

TEST(FallFigures, BarsSumAndCaptionsNameTheWriter) {
  ExplainResult result;
  auto& fall = result.fall.emplace();
  StageAttribution stage;
  stage.stage.layer = 5;
  stage.stage.kind = StageKind::fall;
  stage.stage.dim = 3;
  auto& entry = stage.entry;
  entry.layer = 5;
  entry.dim = 3;
  entry.resid_pre = 1000;
  entry.ffn_out = -700;
  entry.attn_out = 10;
  entry.resid_post = 310;
  entry.neuron_count = 40;
  entry.neuron_sum = -700;
  entry.neurons_for_90_percent = 1;
  entry.neurons = {{.module = "ffn", .neuron = 8, .contribution = -680, .share = 680.0 / 700},
                   {.module = "ffn", .neuron = 2, .contribution = -30, .share = 30.0 / 700}};
  entry.modules = {{.module = "ffn", .contribution = -700}};
  fall.stages = {stage};
  const auto figures = fall_figures(input_of(result));
  ASSERT_EQ(figures.size(), 1U);
  const auto& bars = figures[0].data["entries"][0]["neurons"];
  ASSERT_EQ(bars.size(), 3U);
  EXPECT_EQ(bars[2]["name"], "all 38 others");
  EXPECT_DOUBLE_EQ(bars[2]["value"].get<double>(), 10);  // -700 - (-680) - (-30)
  EXPECT_EQ(figures[0].see,
            "Layer 5 takes dim 3 from 1000 to 310: FFN -700, attention 10; neuron 8 writes -680 "
            "(97.1 %).");
}

TEST(ExplainFigures, WhatWasNotMeasuredHasNone) {
  const ExplainResult nothing;
  const auto input = input_of(nothing);
  EXPECT_TRUE(norm_figures(input).empty());
  EXPECT_TRUE(neuron_figures(input).empty());
  EXPECT_TRUE(fall_figures(input).empty());
  EXPECT_TRUE(factorial_figures(input).empty());
  EXPECT_TRUE(vocabulary_figures(input).empty());
  EXPECT_TRUE(dose_figures(input).empty());
}

TEST(ShareText, RoundsForPeopleAndNearlyAllIsNotAll) {
  EXPECT_EQ(share_text(0.1234), "12.3 %");
  EXPECT_EQ(share_text(1), "100 %");
  EXPECT_EQ(share_text(0.99999), "99.99 %");
  EXPECT_EQ(share_text(0), "0 %");
  EXPECT_EQ(share_text(0.0002), "0.02 %");
  EXPECT_EQ(share_text(3.4e-9), "below 0.001 %");
  EXPECT_EQ(share_text(-0.5), "-50 %");
  EXPECT_EQ(share_text(std::nan("")), "");
}

TEST(ModuleLabel, NamesExpertsForPeople) {
  EXPECT_EQ(module_label("experts.17"), "expert 17");
  EXPECT_EQ(module_label("shared"), "the shared expert");
  EXPECT_EQ(module_label("ffn"), "ffn");
}

}  // namespace
}  // namespace onset::testing
