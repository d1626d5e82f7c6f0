// Site patterns of models whose layers differ: dense ones and mixtures, plain and latent attention.
#include <gtest/gtest.h>

#include "onset/model/config.h"
#include "onset/model/sites.h"
#include "support/support.h"

namespace onset::testing {
namespace {

using Names = std::vector<std::string>;

ModelConfig config_of(const std::string& fixture) {
  return read_config(Checkpoint::open(onset::testing::data("models/" + fixture)));
}

Names names(const std::string& fixture, std::string_view patterns) {
  Names result;
  for (const SiteId site : SiteSet::parse(patterns, config_of(fixture)).list()) {
    result.push_back(site_name(site));
  }
  return result;
}

std::string refusal(const std::string& fixture, std::string_view patterns) {
  const ModelConfig config = config_of(fixture);
  return error_of([&] { static_cast<void>(SiteSet::parse(patterns, config)); });
}

TEST(MixtureSites, RouterIsItsThreeSites) {
  EXPECT_EQ(names("deepseek_v3", "layers.1.router"),
            (Names{"layers.1.router", "layers.1.router.experts", "layers.1.router.weights"}));
  EXPECT_EQ(names("deepseek_v3", "layers.1.router.weights"), (Names{"layers.1.router.weights"}));
  EXPECT_EQ(names("deepseek_v3", "layers.1.router.*"),
            (Names{"layers.1.router.experts", "layers.1.router.weights"}));
  EXPECT_EQ(names("mixtral", "layers.*.router").size(), 9U);
}

TEST(MixtureSites, ExpertsAreNumberedLikeLayers) {
  EXPECT_EQ(names("deepseek_v3", "layers.2.experts.5.out"), (Names{"layers.2.experts.5.out"}));
  EXPECT_EQ(names("deepseek_v3", "layers.2.experts.-1.product"),
            (Names{"layers.2.experts.7.product"}));
  EXPECT_EQ(names("deepseek_v3", "layers.2.experts.6-7|0.out"),
            (Names{"layers.2.experts.0.out", "layers.2.experts.6.out", "layers.2.experts.7.out"}));
  EXPECT_EQ(names("mixtral", "layers.0.experts.*.out").size(), 4U);
  EXPECT_EQ(names("mixtral", "layers.0.experts.2.*"),
            (Names{"layers.0.experts.2.product", "layers.0.experts.2.out"}));
  EXPECT_EQ(names("mixtral", "layers.0.experts.*").size(), 8U);
  EXPECT_EQ(names("mixtral", "layers.*.experts.1.out").size(), 3U);
}

TEST(MixtureSites, PatternsOfSeveralExpertsAddUp) {
  const SiteSet some =
      SiteSet::parse("layers.1.experts.0.out,layers.1.experts.2.out", config_of("mixtral"));
  EXPECT_TRUE(some.contains({SiteKind::expert_out, 1, 0}));
  EXPECT_FALSE(some.contains({SiteKind::expert_out, 1, 1}));
  EXPECT_TRUE(some.contains({SiteKind::expert_out, 1, 2}));
  EXPECT_FALSE(some.contains({SiteKind::expert_out, 2, 0}));
  EXPECT_FALSE(some.contains({SiteKind::expert_product, 1, 0}));
  EXPECT_EQ(names("mixtral", "layers.1.experts.*.out,layers.1.experts.2.out").size(), 4U);
  EXPECT_EQ(names("mixtral", "layers.1.experts.2.out,layers.1.experts.*.out").size(), 4U);
}

// A star over layers takes those that have the site.
TEST(MixtureSites, AStarTakesTheLayersThatHaveIt) {
  // Layer 0 is dense, layers 1 and 2 are mixtures.
  EXPECT_EQ(names("deepseek_v3", "layers.*.shared_out"),
            (Names{"layers.1.shared_out", "layers.2.shared_out"}));
  EXPECT_EQ(names("deepseek_v3", "layers.*.ffn_product"), (Names{"layers.0.ffn_product"}));
  EXPECT_EQ(names("deepseek_v3", "layers.*.experts.0.out"),
            (Names{"layers.1.experts.0.out", "layers.2.experts.0.out"}));
  // Layer 1 is the dense one.
  EXPECT_EQ(names("qwen2_moe", "layers.*.ffn_gate"), (Names{"layers.1.ffn_gate"}));
  EXPECT_EQ(names("qwen2_moe", "layers.0-1.shared_product"), (Names{"layers.0.shared_product"}));
}

TEST(MixtureSites, EveryKindOfALayer) {
  const Names dense = names("deepseek_v3", "layers.0.*");
  const Names mixture = names("deepseek_v3", "layers.1.*");
  // Both latents, and the 18 sites of a dense layer without norms after its modules.
  EXPECT_EQ(dense.size(), 20U);
  // ffn_gate, ffn_up and ffn_product give way to the router's three, the shared expert's two, and
  // two of each of 8 experts.
  EXPECT_EQ(mixture.size(), 20U - 3 + 3 + 2 + 16);
  EXPECT_EQ(mixture.back(), "layers.1.resid_post");
  EXPECT_EQ(names("mixtral", "*").size(), 3U + 3 * (18 - 3 + 3 + 8));
}

TEST(MixtureSites, LatentsOfModelsThatHaveThem) {
  EXPECT_EQ(names("deepseek_v3", "layers.0.*_latent"),
            (Names{"layers.0.q_latent", "layers.0.kv_latent"}));
  EXPECT_EQ(names("deepseek_v2_lite", "layers.0.*_latent"), (Names{"layers.0.kv_latent"}));
}

TEST(MixtureSites, WhatALayerOrAModelLacksIsRefusedWithTheReason) {
  struct Row {
    const char* fixture;
    const char* pattern;
    const char* message;
  };
  for (const Row& row : std::vector<Row>{
           {"deepseek_v3", "layers.0.router",
            "layer 0 of deepseek_v3 has no router: only mixtures of experts have it"},
           {"deepseek_v3", "layers.0.experts.3.out",
            "layer 0 of deepseek_v3 has no experts.3.out: only mixtures of experts have it"},
           {"deepseek_v3", "layers.0.experts.*.product",
            "layer 0 of deepseek_v3 has no experts.*.product: only mixtures of experts have it"},
           {"deepseek_v3", "layers.0.shared_out",
            "layer 0 of deepseek_v3 has no shared_out: only mixtures with a shared expert have it"},
           {"deepseek_v3", "layers.1-2.ffn_product",
            "layer 1-2 of deepseek_v3 has no ffn_product: only dense layers have it"},
           {"deepseek_v3", "layers.2.ffn_up", "a mixture has layers.*.experts.*.product"},
           {"mixtral", "layers.*.ffn_gate", "mixtral has no ffn_gate: only dense layers have it"},
           {"mixtral", "layers.*.shared_out",
            "mixtral has no shared_out: only mixtures with a shared expert have it"},
           {"mixtral", "layers.*.kv_latent",
            "mixtral has no kv_latent: only families with latent attention have it"},
           {"deepseek_v2_lite", "layers.*.q_latent",
            "deepseek_v2 has no q_latent: only latent attention with a low rank of queries has it"},
           {"llama", "layers.*.q_latent",
            "llama has no q_latent: only latent attention with a low rank of queries has it"},
           {"llama", "layers.*.router", "llama has no router: only mixtures of experts have it"},
           {"llama", "layers.*.experts.0.out",
            "llama has no experts.0.out: only mixtures of experts have it"},
           {"llama", "layers.0.experts.*", "llama has no experts.*: only mixtures of experts"}}) {
    const std::string error = refusal(row.fixture, row.pattern);
    EXPECT_NE(error.find(row.message), std::string::npos)
        << row.fixture << " " << row.pattern << ": " << error;
  }
}

TEST(MixtureSites, WrongExpertsAreNamed) {
  struct Row {
    const char* pattern;
    const char* message;
  };
  for (const Row& row : std::vector<Row>{
           {"layers.1.experts.8.out",
            "expert 8 of \"layers.1.experts.8.out\" is out of range 0 to 7"},
           {"layers.1.experts.-9.out", "out of range -8 to -1"},
           {"layers.1.experts.99999999999999999999.out", "out of range 0 to 7"},
           {"layers.1.experts.5-2.out", "range of experts 5-2"},
           {"layers.1.experts.E.out", "\"E\" of \"layers.1.experts.E.out\" names no expert"},
           {"layers.1.experts..out", "names no expert"},
           {"layers.1.experts.3.outs", "no site is named \"layers.1.experts.3.outs\""},
           {"layers.1.experts.3", "no site is named \"layers.1.experts.3\""},
           {"layers.1.experts", "no site is named \"layers.1.experts\""},
           {"layers.1.routr", "\"layers.1.router\""},
           {"layers.1.router.weigths", "\"layers.1.router.weights\""},
           {"layers.1.shared_oot", "\"layers.1.shared_out\""}}) {
    const std::string error = refusal("deepseek_v3", row.pattern);
    EXPECT_NE(error.find(row.message), std::string::npos) << row.pattern << ": " << error;
  }
}

}  // namespace
}  // namespace onset::testing
