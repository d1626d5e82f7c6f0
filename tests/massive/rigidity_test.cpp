// Rigidity: its parts by formula, its tokens, and the demonstration model against the references.
#include "onset/massive/rigidity.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onset/model/hooks.h"
#include "onset/model/model.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;
using Vectors = std::vector<std::vector<float>>;

template <typename Action>
void expect_refused(Action&& action, const std::string& part) {
  const std::string message = error_of(action);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(CosineMatrix, IsThatOfTheAngles) {
  const auto cosines = cosine_matrix(Vectors{{2, 0}, {3, 3}, {0, -5}, {0, 0}});
  EXPECT_NEAR(cosines[0][0], 1, 1e-12);
  EXPECT_NEAR(cosines[0][1], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(cosines[1][2], -std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(cosines[0][2], 0, 1e-12);
  EXPECT_TRUE(std::isnan(cosines[3][0])) << "a zero state has no direction";
}

TEST(EffectiveRank, CountsDirections) {
  EXPECT_NEAR(effective_rank(Vectors{{1, 2, 3}, {2, 4, 6}}), 1, 1e-9);
  EXPECT_NEAR(effective_rank(Vectors{{5, 0, 0}, {0, 5, 0}, {0, 0, 5}}), 3, 1e-9);
  // Singular values 3 and 1: entropy of (3/4, 1/4).
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  EXPECT_NEAR(effective_rank(Vectors{{3, 0}, {0, 1}}), std::exp(entropy), 1e-9);
  EXPECT_TRUE(std::isnan(effective_rank(Vectors{{0, 0}, {0, 0}})));
}

std::vector<ScanPrompt> fixture_prompts(const std::string& fixture) {
  const ReferenceTensors tensors(
      onset::testing::data("models/" + fixture + "/reference.safetensors"));
  return {{"", tensors.ids("input_ids.a")}, {"", tensors.ids("input_ids.b")}};
}

TEST(RigidityTokens, AreTheMassiveOneAndAnOrdinaryOneNearTheMiddle) {
  const Model model = Model::open(onset::testing::data("models/llama_me"));
  const ScanResult found = scan(model, fixture_prompts("llama_me"), {});
  const RigidityChoice choice = choose_tokens(found, {});
  ASSERT_EQ(choice.prompts.size(), found.prompts.size());
  for (const RigidityPrompt& prompt : choice.prompts) {
    EXPECT_EQ(prompt.token, 0);
    EXPECT_EQ(prompt.baseline, static_cast<std::int64_t>(prompt.ids.size()) / 2);
  }
  EXPECT_EQ(choose_tokens(found, {.token = 2, .baseline = 1}).prompts[0].token, 2);
  EXPECT_EQ(choose_tokens(found, {.token = 2, .baseline = 1}).prompts[0].baseline, 1);
  expect_refused([&] { static_cast<void>(choose_tokens(found, {.token = 1, .baseline = 1})); },
                 "both 1");
  expect_refused([&] { static_cast<void>(choose_tokens(found, {.baseline = 0})); },
                 "massive token of prompt 0");
  expect_refused([&] { static_cast<void>(choose_tokens(found, {.token = 5000})); },
                 "outside prompt 0");
}

TEST(RigidityTokens, PromptsThatDisagreeAreLeftOutAndNoneIsGuessed) {
  const auto prompt = [](std::optional<std::int64_t> me_layer, std::int64_t token) {
    PromptScan scanned;
    scanned.ids = {1, 2, 3, 4};
    scanned.me_layer = me_layer;
    scanned.layers.resize(3);
    scanned.layers[1].largest.token = token;
    scanned.layers[1].massive_entries = {{.token = token}, {.token = 2}};
    return scanned;
  };
  ScanResult scanned;
  scanned.prompts = {prompt(2, 0), prompt(1, 1), prompt(std::nullopt, 0)};
  scanned.me_layer = 1;
  const RigidityChoice choice = choose_tokens(scanned, {});
  ASSERT_EQ(choice.prompts.size(), 1U);
  EXPECT_EQ(choice.scanned, (std::vector<std::size_t>{1}));
  EXPECT_EQ(choice.prompts[0].token, 1);
  EXPECT_EQ(choice.prompts[0].baseline, 3) << "2 and 1 are massive";
  scanned.me_layer.reset();
  expect_refused([&] { static_cast<void>(choose_tokens(scanned, {})); }, "--token 0");
  EXPECT_EQ(choose_tokens(scanned, {.token = 0}).prompts.size(), 3U);
  scanned.prompts[2].ids = {1};
  EXPECT_FALSE(choose_tokens(scanned, {.token = 0}).prompts[2].baseline.has_value());
}

TEST(RigidityTokens, EqualPrefixesAreCountedOnce) {
  const std::vector<RigidityPrompt> prompts{{.ids = {1, 2, 3}, .token = 1},
                                            {.ids = {1, 2, 9}, .token = 1},
                                            {.ids = {1, 2, 9}, .token = 2},
                                            {.ids = {4, 2}, .token = 1}};
  EXPECT_EQ(distinct_prefixes(prompts), 3U);
}

TEST(Rigidity, SeesInterventionsAndEverySiteOfTheFamily) {
  const Model model = Model::open(onset::testing::data("models/llama_me"));
  const std::int64_t layers = model.config().layer_count();
  const std::vector<RigidityPrompt> prompts{{.ids = {5, 6, 7, 8}, .token = 0, .baseline = 2},
                                            {.ids = {9, 10, 11}, .token = 0, .baseline = {}}};
  const RigidityResult plain = measure_rigidity(model, prompts);
  ASSERT_EQ(plain.sites.size(), 4U);
  EXPECT_EQ(plain.sites[0].site, SiteKind::resid_post);
  EXPECT_EQ(plain.sites[1].site, SiteKind::attn_norm);
  EXPECT_EQ(plain.sites[2].site, SiteKind::k_pre);
  EXPECT_EQ(plain.sites[3].site, SiteKind::v);
  EXPECT_EQ(plain.sites[0].token.prompts.size(), static_cast<std::size_t>(layers));
  EXPECT_EQ(plain.sites[0].token.layers.size(), 2U);
  ASSERT_TRUE(plain.sites[0].baseline.has_value());
  EXPECT_EQ(plain.sites[0].baseline->layers.size(), 1U) << "one prompt has a baseline";
  EXPECT_TRUE(std::isnan(plain.sites[0].baseline->effective_rank[0]));

  Hooks same(layers);
  SiteSet last(layers);
  last.add({SiteKind::resid_post, layers - 1});
  same.intervene(last, [](const SiteContext&, const at::Tensor& x) { return at::ones_like(x); });
  const RigidityResult edited = measure_rigidity(model, prompts, {}, &same);
  const auto end = static_cast<std::size_t>(layers - 1);
  EXPECT_NEAR(edited.sites[0].token.effective_rank[end], 1, 1e-6);
  EXPECT_NEAR(edited.sites[0].token.mean_prompts[end], 1, 1e-9);
  EXPECT_EQ(edited.sites[3].token.mean_prompts, plain.sites[3].token.mean_prompts);
}

TEST(Rigidity, AModelWithoutANormBeforeAttentionHasNoSuchSite) {
  const Model model = Model::open(onset::testing::data("models/olmo2"));
  const RigidityResult result =
      measure_rigidity(model, {{.ids = {5, 6, 7}, .token = 0, .baseline = 1}});
  ASSERT_EQ(result.sites.size(), 3U);
  EXPECT_EQ(result.sites[1].site, SiteKind::k_pre);
}

// Latent attention: keys and values of all heads, of different sizes.
TEST(Rigidity, KeysAndValuesMayDifferInSize) {
  const Model model = Model::open(onset::testing::data("models/deepseek_v2"));
  const std::vector<RigidityPrompt> prompts{{.ids = {5, 6, 7}, .token = 0, .baseline = 1},
                                            {.ids = {8, 6, 7}, .token = 0, .baseline = 1}};
  const RigidityResult result = measure_rigidity(model, prompts);
  ASSERT_EQ(result.sites.size(), 4U);
  for (const SiteRigidity& site : result.sites) {
    for (const double rank : site.token.effective_rank) {
      EXPECT_GE(rank, 1);
      EXPECT_LE(rank, 2 + 1e-9);
    }
  }
}

TEST(Rigidity, WhatCannotBeComparedIsRefused) {
  const Model model = Model::open(onset::testing::data("models/llama"));
  expect_refused([&] { static_cast<void>(measure_rigidity(model, {})); }, "at least one prompt");
  expect_refused(
      [&] {
        static_cast<void>(measure_rigidity(model, {{.ids = {1, 2}, .token = 2}}));
      },
      "no token 2");
  const std::vector<RigidityPrompt> many(most_rigidity_prompts + 1, {.ids = {1, 2}, .token = 0});
  expect_refused([&] { static_cast<void>(measure_rigidity(model, many)); }, "at most 128");
  Hooks broken(model.config().layer_count());
  SiteSet values(model.config().layer_count());
  values.add({SiteKind::v, 1});
  broken.intervene(values,
                   [](const SiteContext&, const at::Tensor& v) { return v.div(0.0).mul(0.0); });
  expect_refused(
      [&] {
        static_cast<void>(measure_rigidity(model, {{.ids = {1, 2}, .token = 0}}, {}, &broken));
      },
      "layers.1.v holds NaN");
}

// decompose.json: 1e-4 of the largest value in a list of cosines.
constexpr double tolerance = 1e-4;

class Smollm2Rigidity : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    const Model model = Model::open(path);
    reference_ = OrderedJson::parse(read_file(onset::testing::data("smollm2/decompose.json")));
    const auto scanned = OrderedJson::parse(read_file(onset::testing::data("smollm2/scan.json")));
    std::vector<RigidityPrompt> prompts;
    for (const auto& name : reference_["cosine_across_prompts"]["prompts"]) {
      for (const OrderedJson& prompt : scanned["prompts"]) {
        if (prompt["name"] != name) continue;
        const auto ids = prompt["ids"].get<Ids>();
        prompts.push_back({.ids = ids, .token = 0, .baseline = {}});
        if (ids.size() > 3) prompts.back().baseline = 3;
      }
    }
    ASSERT_EQ(prompts.size(), 13U);
    result_ = measure_rigidity(model, prompts);
  }

  static void expect_matrix(const CosineMatrix& found, const OrderedJson& expected,
                            std::size_t shift) {
    for (std::size_t i = shift; i < expected.size(); ++i) {
      for (std::size_t j = shift; j < expected.size(); ++j) {
        EXPECT_NEAR(found[i - shift][j - shift], expected[i][j].get<double>(), tolerance)
            << i << ", " << j;
      }
    }
  }

  OrderedJson reference_;
  RigidityResult result_;
};

TEST_F(Smollm2Rigidity, CosinesBetweenLayersEqualTheReference) {
  const auto& across = reference_["cosine_across_layers"];
  // resid_post of a layer is the reference's resid_in of the next.
  const StateRigidity& stream = result_.sites[0].token;
  const StateRigidity& input = result_.sites[1].token;
  expect_matrix(stream.layers[0], across["resid_in"]["all_pairs_first_prompt"], 1);
  expect_matrix(input.layers[0], across["attn_in"]["all_pairs_first_prompt"], 0);
  std::size_t p = 0;
  for (const auto& name : reference_["cosine_across_prompts"]["prompts"]) {
    const auto& stream_row = across["resid_in"]["consecutive"][name.get<std::string>()];
    const auto& input_row = across["attn_in"]["consecutive"][name.get<std::string>()];
    for (std::size_t l = 0; l < 29; ++l) {
      EXPECT_NEAR(input.layers[p][l][l + 1], input_row[l].get<double>(), tolerance) << name << l;
      if (l == 0) continue;
      EXPECT_NEAR(stream.layers[p][l - 1][l], stream_row[l].get<double>(), tolerance) << name << l;
    }
    ++p;
  }
  const auto& other = across["attn_in"]["consecutive_other_token_first_prompt"];
  ASSERT_EQ(other["token"], 3);
  for (std::size_t l = 0; l < 29; ++l) {
    EXPECT_NEAR(result_.sites[1].baseline->layers[0][l][l + 1], other["cos"][l].get<double>(),
                tolerance);
  }
}

TEST_F(Smollm2Rigidity, CosinesBetweenPromptsEqualTheReference) {
  const auto& across = reference_["cosine_across_prompts"];
  const std::vector<std::pair<std::size_t, std::string>> sites{{1, "attn_in"}, {2, "k"}, {3, "v"}};
  for (const auto& [site, name] : sites) {
    const StateRigidity& found = result_.sites[site].token;
    for (std::size_t l = 0; l < 30; ++l) {
      const auto& row = across[name][l];
      EXPECT_NEAR(found.mean_prompts[l], row["mean"].get<double>(), tolerance) << name << " " << l;
      EXPECT_NEAR(found.min_prompts[l], row["min"].get<double>(), tolerance) << name << " " << l;
    }
  }
  for (const auto& [layer, matrix] : across["attn_in_matrix_entering_block"].items()) {
    expect_matrix(result_.sites[1].token.prompts[std::stoul(layer)], matrix, 0);
  }
}

// From the ME layer on the massive token's states of several prompts point one way; an ordinary
// token's do not.
TEST(Smollm2Texts, TheMassiveTokenIsOfRankOneAndAnOrdinaryOneIsNot) {
  const auto path = demo_model();
  if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
  const Model model = Model::open(path);
  const auto scanned = OrderedJson::parse(read_file(onset::testing::data("smollm2/scan.json")));
  std::vector<ScanPrompt> prompts;
  for (const OrderedJson& prompt : scanned["prompts"]) {
    const auto ids = prompt["ids"].get<Ids>();
    if (ids.size() < 60) prompts.push_back({prompt["name"], ids});
  }
  const RigidityChoice choice = choose_tokens(scan(model, prompts, {}), {});
  EXPECT_EQ(choice.prompts.size(), prompts.size() - 1) << "one token alone has no ME layer";
  const SiteRigidity stream = measure_rigidity(model, choice.prompts).sites[0];
  for (std::size_t l = 11; l <= 27; ++l) {
    EXPECT_LT(stream.token.effective_rank[l], 1.2) << l;
    EXPECT_GT(stream.baseline->effective_rank[l], 4) << l;
    EXPECT_GT(stream.token.mean_prompts[l], 0.99) << l;
    EXPECT_LT(stream.baseline->mean_prompts[l], 0.9) << l;
  }
}

}  // namespace
}  // namespace onset::testing
