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
  config.pre_norms = true;
  config.post_norms = false;
  EXPECT_EQ(SiteSet::parse("layers.0.*", 4, site_kinds(config)).list().size(), 18U);
  const std::string error = error_of(
      [&] { static_cast<void>(SiteSet::parse("layers.*.attn_raw", 4, site_kinds(config))); });
  EXPECT_NE(error.find("attn_raw"), std::string::npos);
  config.pre_norms = false;
  config.post_norms = true;
  EXPECT_EQ(SiteSet::parse("layers.0.*", 4, site_kinds(config)).list().size(), 19U);
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
