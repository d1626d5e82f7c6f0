// The pictures of rigidity show what was measured, whatever the numbers and texts are, and stay
// small.
#include "onset/report/rigidity_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onset/model/model.h"
#include "onset/report/html.h"
#include "support/support.h"

namespace onset::testing {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// A state of every prompt and layer as an angle in the plane: cosines of differences.
StateRigidity made(std::size_t prompts, std::size_t layers, double turn) {
  const auto angle = [&](std::size_t p, std::size_t l) {
    return turn * (static_cast<double>(p) + 0.01 * static_cast<double>(l));
  };
  StateRigidity state;
  const auto matrix = [](std::size_t size, const auto& cosine) {
    CosineMatrix rows(size, std::vector<double>(size));
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) rows[i][j] = cosine(i, j);
    }
    return rows;
  };
  state.mean_layers =
      matrix(layers, [&](auto l, auto m) { return std::cos(angle(0, l) - angle(0, m)); });
  for (std::size_t l = 0; l < layers; ++l) {
    state.prompts.push_back(
        matrix(prompts, [&](auto p, auto q) { return std::cos(angle(p, l) - angle(q, l)); }));
    state.mean_prompts.push_back(prompts > 1 ? 0.5 : nothing);
    state.min_prompts.push_back(prompts > 1 ? -0.5 : nothing);
    state.effective_rank.push_back(prompts > 1 ? 1.5 : nothing);
  }
  return state;
}

RigidityResult made(std::size_t prompts, std::size_t layers) {
  RigidityResult result;
  for (std::size_t p = 0; p < prompts; ++p) {
    result.prompts.push_back({.ids = {static_cast<std::int64_t>(p), 1, 2}, .baseline = 2});
  }
  const StateRigidity token = made(prompts, layers, 0.0123);
  const StateRigidity baseline = made(prompts, layers, 0.777);
  for (const SiteKind site :
       {SiteKind::resid_post, SiteKind::attn_norm, SiteKind::k_pre, SiteKind::v}) {
    result.sites.push_back({site, token, baseline});
  }
  return result;
}

void expect_finite(const OrderedJson& value) {
  if (value.is_number_float()) {
    EXPECT_TRUE(std::isfinite(value.get<double>()));
  }
  if (!value.is_structured()) return;
  for (const auto& part : value) expect_finite(part);
}

std::size_t bytes_of(const std::vector<Figure>& figures) {
  std::size_t bytes = 0;
  for (const Figure& figure : figures) {
    bytes += script_json(figure.data).size();
    expect_finite(figure.data);
  }
  return bytes;
}

TEST(RigidityFigures, MatricesAreTheMeasuredOnes) {
  const Model model = Model::open(data("models/llama_me"));
  // The second prompt has no baseline.
  const std::vector<RigidityPrompt> prompts{{.ids = {1, 5, 9, 4, 7}, .baseline = 2},
                                            {.ids = {2, 5}},
                                            {.ids = {3, 8, 6, 2}, .baseline = 3}};
  const auto result = measure_rigidity(model, prompts);
  const RigidityFiguresInput input{.result = result, .me_layer = 1, .last_massive_layer = 1};
  const auto figures = rigidity_figures(input);
  ASSERT_EQ(figures.size(), 3U);
  const auto layers = result.sites[0].token.prompts.size();
  for (std::size_t s = 0; s < result.sites.size(); ++s) {
    const auto& site = result.sites[s];
    const auto& between_layers = figures[0].data["sites"][s];
    const auto& between_prompts = figures[1].data["sites"][s];
    EXPECT_EQ(between_layers["site"], site_kind_name(site.site));
    for (std::size_t l = 0; l < layers; ++l) {
      for (std::size_t m = 0; m <= l; ++m) {
        double mean = 0;  // by way of the single prompts
        for (const auto& matrix : site.token.layers) mean += matrix[m][l] / 3;
        EXPECT_NEAR(between_layers["panels"][0]["frames"][0][l][m].get<double>(), mean, 6e-6);
      }
      for (std::size_t p = 0; p < 3; ++p) {
        for (std::size_t q = 0; q <= p; ++q) {
          EXPECT_NEAR(between_prompts["panels"][0]["frames"][l][p][q].get<double>(),
                      site.token.prompts[l][q][p], 6e-6);
        }
      }
      const auto& baseline = between_prompts["panels"][1]["frames"][l];
      ASSERT_EQ(baseline.size(), 2U);
      EXPECT_NEAR(baseline[1][0].get<double>(), site.baseline->min_prompts[l], 6e-6);
      EXPECT_NEAR(figures[2].data["plots"][s][0]["series"][0]["values"][l].get<double>(),
                  site.token.effective_rank[l], 6e-6);
    }
    EXPECT_EQ(between_prompts["panels"][1]["prompts"], OrderedJson::array({0, 2}));
  }
  EXPECT_EQ(figures[1].data["frames"][figures[1].data["chosen"].get<std::size_t>()], 1);
}

TEST(RigidityFigures, CaptionHasTheNumbersOfTheMassiveLayers) {
  auto result = made(4, 6);
  auto& site = result.sites[0];
  for (std::size_t l = 0; l < 6; ++l) {
    for (std::size_t m = 0; m < 6; ++m) {
      site.token.mean_layers[l][m] = l >= 2 && m >= 2 && l <= 4 && m <= 4 ? 0.99987 : 0.1;
    }
  }
  const RigidityFiguresInput input{.result = result, .me_layer = 2, .last_massive_layer = 4};
  const auto figure = layer_cosine_figure(input);
  EXPECT_TRUE(
      figure.see.starts_with("From layer 2 to 4 the residual stream has a cosine with the "
                             "layer before of 0.9999 for the massive token, "))
      << figure.see;
  const auto prompts = prompt_cosine_figure(input);
  EXPECT_TRUE(
      prompts.see.starts_with("After layer 2, the ME layer, the residual streams of two "
                              "prompts have a cosine of 0.5000 for the massive token, "))
      << prompts.see;
  EXPECT_EQ(prompts.see.find("equal by causality"), std::string::npos);
  site.token.effective_rank = {9, 9, 1.25, 1.5, 1.125, 9};
  EXPECT_NE(
      rank_figure(input).see.find("is 1.25 for the massive token, 1.5 for the baseline token; "
                                  "from layer 2 to 4 the massive token's is 1.5 at most."),
      std::string::npos)
      << rank_figure(input).see;
  for (auto& prompt : result.prompts) prompt.ids.front() = 7;
  EXPECT_NE(prompt_cosine_figure(input).see.find("all prompts are alike up to that token"),
            std::string::npos);
}

TEST(RigidityFigures, OnePromptZeroStatesAndNoBaselineHavePictures) {
  auto result = made(1, 3);
  result.sites.resize(1);
  result.sites[0].baseline.reset();
  result.sites[0].token.mean_layers[2] = {nothing, nothing, nothing};
  result.prompts[0].baseline.reset();
  const auto figures = rigidity_figures({.result = result});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_TRUE(figures[0].data["sites"][0]["panels"][0]["frames"][0][2][1].is_null());
  EXPECT_EQ(figures[0].data["sites"][0]["panels"].size(), 1U);
  EXPECT_GT(bytes_of(figures), 0U);
}

TEST(RigidityFigures, TextsFromOutsideStayTexts) {
  const auto result = made(2, 3);
  const RigidityFiguresInput input{.result = result,
                                   .prompts = {"</script><script>a()</script>", "\xFF<b>"}};
  Page page{
      .kind = "k", .heading = "h", .lead = {}, .highlights = {}, .sections = {}, .shared = {}};
  page.sections.push_back(
      {.id = "rigidity", .title = "Rigidity", .figures = rigidity_figures(input)});
  const auto html = render_page(page);
  EXPECT_EQ(html.find("<script>a()"), std::string::npos);
  EXPECT_EQ(html.find("<b>\""), std::string::npos);
}

TEST(RigidityFigures, StaySmallForLargeModelsAndManyPrompts) {
  const auto layers = made(8, 128);
  EXPECT_LT(bytes_of(rigidity_figures({.result = layers, .me_layer = 3})), 1'600'000U);
  const auto both = made(most_rigidity_prompts, 61);
  const RigidityFiguresInput input{.result = both, .me_layer = 47, .last_massive_layer = 60};
  const auto figures = rigidity_figures(input);
  EXPECT_LT(bytes_of(figures), 2'200'000U);
  const auto& prompts = figures[1].data;
  EXPECT_EQ(prompts["frames"][prompts["chosen"].get<std::size_t>()], 47);
  EXPECT_EQ(prompts["frames"].size(), prompts["sites"][0]["panels"][0]["frames"].size());
}

}  // namespace
}  // namespace onset::testing
