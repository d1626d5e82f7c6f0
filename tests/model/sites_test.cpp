#include "onset/model/sites.h"

#include <gtest/gtest.h>

#include "onset/model/config.h"
#include "support/support.h"

namespace onset::testing {
namespace {

std::vector<std::string> names(std::string_view patterns, std::int64_t layers = 4) {
  std::vector<std::string> result;
  for (const SiteId site : SiteSet::parse(patterns, layers).list())
    result.push_back(site_name(site));
  return result;
}

using Names = std::vector<std::string>;

TEST(SitePatterns, LayersAreNumbersRangesListsAndCountsFromTheEnd) {
  EXPECT_EQ(names("layers.2.resid_post"), (Names{"layers.2.resid_post"}));
  EXPECT_EQ(names("layers.-1.v"), (Names{"layers.3.v"}));
  EXPECT_EQ(names("layers.1-2.k"), (Names{"layers.1.k", "layers.2.k"}));
  EXPECT_EQ(names("layers.0|3.k"), (Names{"layers.0.k", "layers.3.k"}));
  EXPECT_EQ(names("layers.*.q").size(), 4U);
}

TEST(SitePatterns, ListsComeInTheOrderOfThePass) {
  EXPECT_EQ(names("logits, layers.1.resid_post ,layers.1.attn_norm,embed"),
            (Names{"embed", "layers.1.attn_norm", "layers.1.resid_post", "logits"}));
}

TEST(SitePatterns, EveryKindOfALayer) {
  const Names all = names("layers.0.*");
  EXPECT_EQ(all.size(), 20U);
  EXPECT_EQ(all.front(), "layers.0.resid_pre");
  EXPECT_EQ(all.back(), "layers.0.resid_post");
}

TEST(SitePatterns, OnlyWhatTheModelHasIsFound) {
  ModelConfig config;
  config.layers.resize(4);
  config.pre_norms = true;
  config.post_norms = false;
  EXPECT_EQ(SiteSet::parse("layers.0.*", config).list().size(), 18U);
  const std::string error =
      error_of([&] { static_cast<void>(SiteSet::parse("layers.*.attn_raw", config)); });
  EXPECT_NE(error.find("attn_raw"), std::string::npos);
  config.pre_norms = false;
  config.post_norms = true;
  EXPECT_EQ(SiteSet::parse("layers.0.*", config).list().size(), 19U);
}

TEST(SitePatterns, AStarStandsForAnyPartOfAKind) {
  EXPECT_EQ(names("layers.3.ffn_*"),
            (Names{"layers.3.ffn_norm", "layers.3.ffn_gate", "layers.3.ffn_up",
                   "layers.3.ffn_product", "layers.3.ffn_raw", "layers.3.ffn_out"}));
  EXPECT_EQ(names("layers.0.*_pre"),
            (Names{"layers.0.resid_pre", "layers.0.q_pre", "layers.0.k_pre"}));
  EXPECT_EQ(names("layers.0.a*_*o*s"), (Names{"layers.0.attn_scores", "layers.0.attn_probs"}));
  EXPECT_EQ(names("layers.*.attn_*").size(), 4U * 6U);
  ModelConfig config;
  config.layers.resize(4);
  EXPECT_EQ(SiteSet::parse("layers.0.attn_*", config).list().size(), 5U)
      << "without attn_raw, which the model does not have";
  EXPECT_NE(error_of([] {
              static_cast<void>(SiteSet::parse("layers.0.x*", 4));
            }).find("no site is named \"layers.0.x*\""),
            std::string::npos);
}

TEST(SitePatterns, WhatOnlyOtherFamiliesHaveIsRefusedWithTheReason) {
  const auto refusal = [](const char* pattern, bool pre_norms) {
    ModelConfig config;
    config.layers.resize(4);
    config.architecture = pre_norms ? "llama" : "olmo2";
    config.layers.resize(4);
    config.pre_norms = pre_norms;
    config.post_norms = !pre_norms;
    return error_of([&] { static_cast<void>(SiteSet::parse(pattern, config)); });
  };
  EXPECT_NE(refusal("layers.*.attn_raw", true)
                .find("llama has no attn_raw: only families with a norm after the module have it"),
            std::string::npos);
  EXPECT_NE(refusal("layers.1.ffn_raw", true).find("layers.*.ffn_out"), std::string::npos);
  EXPECT_NE(refusal("layers.*.attn_norm", false)
                .find("olmo2 has no attn_norm: only families with a norm before attention have it"),
            std::string::npos);
}

TEST(SitePatterns, ACommaBetweenLayersIsToldFromOneBetweenSites) {
  const auto refusal = [](const char* pattern) {
    return error_of([pattern] { static_cast<void>(SiteSet::parse(pattern, 4)); });
  };
  EXPECT_NE(refusal("layers.0,1.q").find("write layers.0|1.q"), std::string::npos);
  EXPECT_NE(refusal("embed,layers.0, 2-3,-1.q,logits").find("write layers.0|2-3|-1.q"),
            std::string::npos);
  EXPECT_EQ(refusal("layers.0,logits").find("write"), std::string::npos);
  EXPECT_EQ(refusal("layers.0,1").find("write"), std::string::npos);
}

TEST(SitePatterns, EverySite) {
  EXPECT_EQ(names("*").size(), 4U * 20U + 3U);
  EXPECT_EQ(names("*").front(), "embed");
  EXPECT_EQ(names("*").back(), "logits");
}

TEST(SitePatterns, ErrorsSayWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"layers.40.resid_post", "layer 40 of \"layers.40.resid_post\" is out of range 0 to 29"},
      {"layers.2-30.v", "layer 30 of \"layers.2-30.v\" is out of range 0 to 29"},
      {"layers.-31.v", "out of range -30 to -1"},
      {"layers.99999999999999999999.v", "out of range 0 to 29"},
      {"layers.9-3.v", "range of layers 9-3 of \"layers.9-3.v\" is reversed"},
      {"layers.x.v", R"("x" of "layers.x.v" names no layer)"},
      {"layers.3.resid_pots", "\"layers.3.resid_post\""},
      {"atn_probs", "\"layers.*.attn_probs\""},
      {"logit", "\"logits\""},
  };
  for (const auto& row : wrong) {
    const auto error = error_of([&row] { static_cast<void>(SiteSet::parse(row.first, 30)); });
    EXPECT_NE(error.find(row.second), std::string::npos) << error;
  }
}

TEST(SitePatterns, WhatNamesNothingIsAnErrorWithTheNearestNames) {
  for (const char* bad : {"layers.4.resid_post", "layers.2.resid_pots", "layers.2", "layers..v",
                          "resid_post", "layers.3-1.v", "layers.x.v", "logit", "", "embed,,logits",
                          "layers.-5.v", "layers.99999999999999999999.v"}) {
    EXPECT_NE(error_of([&] { static_cast<void>(SiteSet::parse(bad, 4)); }), "") << bad;
  }
  EXPECT_NE(error_of([] {
              static_cast<void>(SiteSet::parse("layers.2.resid_pots", 4));
            }).find("resid_post"),
            std::string::npos);
}

}  // namespace
}  // namespace onset::testing
