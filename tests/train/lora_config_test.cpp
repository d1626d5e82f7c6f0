// Which modules a configuration chooses; the expectations are those of PEFT 0.21's
// check_target_module_exists and get_pattern_key.
#include "onset/train/lora_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onset/base/error.h"
#include "support/support.h"

namespace onset::testing {
namespace {

constexpr const char* q = "model.layers.1.self_attn.q_proj";
constexpr const char* expert = "model.layers.11.mlp.experts.1.up_proj";

TEST(LoraTargets, NamesFitTheEndOfAModuleAtADot) {
  LoraConfig config;
  config.targets.names = {"q_proj", "mlp.down_proj"};
  EXPECT_TRUE(is_target(config, q, true));
  EXPECT_TRUE(is_target(config, "model.layers.0.mlp.down_proj", true));
  EXPECT_FALSE(is_target(config, "model.layers.0.mlp.experts.0.down_proj", true));
  EXPECT_FALSE(is_target(config, "model.layers.0.self_attn.eq_proj", true));
  config.excluded.names = {q};
  EXPECT_FALSE(is_target(config, q, true));
  EXPECT_TRUE(is_target(config, "model.layers.0.self_attn.q_proj", true));
}

TEST(LoraTargets, ARegexFitsTheWholeName) {
  LoraConfig config;
  config.targets.regex = R"(.*layers\.(1|2)\..*q_proj|lm_head)";
  EXPECT_TRUE(is_target(config, q, true));
  EXPECT_TRUE(is_target(config, "lm_head", false));
  EXPECT_FALSE(is_target(config, "model.layers.3.self_attn.q_proj", true));
  EXPECT_FALSE(is_target(config, std::string(q) + "_2", true));
}

TEST(LoraTargets, AllLinearLeavesHeadAndRouters) {
  LoraConfig config;
  config.all_linear = true;
  config.modules_to_save = {"o_proj"};
  EXPECT_TRUE(is_target(config, q, true));
  EXPECT_FALSE(is_target(config, "lm_head", false));
  EXPECT_FALSE(is_target(config, "model.layers.1.self_attn.o_proj", true));
}

TEST(LoraTargets, LayersCountTheFirstNumberOfAName) {
  LoraConfig config;
  config.targets.names = {"q_proj", "up_proj", "model.layers.7.self_attn.q_proj"};
  config.layers = {11};
  EXPECT_FALSE(is_target(config, q, true));
  EXPECT_TRUE(is_target(config, expert, true));
  // Named whole.
  EXPECT_TRUE(is_target(config, "model.layers.7.self_attn.q_proj", true));
  config.layers = {1};
  EXPECT_TRUE(is_target(config, q, true));
  EXPECT_FALSE(is_target(config, expert, true));
  config.layers_pattern = {"experts"};
  EXPECT_TRUE(is_target(config, expert, true));
  EXPECT_FALSE(is_target(config, q, true));
}

TEST(LoraPatterns, TheFirstThatFitsCounts) {
  LoraConfig config;
  config.rank = 8;
  config.alpha = 16;
  config.rank_pattern = {{R"(layers\.1\.self_attn\.q_proj)", 2}, {"q_proj", 4}};
  config.alpha_pattern = {{R"(self_attn\..*)", 32.0}};
  EXPECT_EQ(rank_of(config, q), 2);
  EXPECT_EQ(rank_of(config, "model.layers.2.self_attn.q_proj"), 4);
  // "11" ends in "1", but not behind a dot.
  EXPECT_EQ(rank_of(config, "model.layers.11.self_attn.q_proj"), 4);
  EXPECT_EQ(rank_of(config, "model.layers.2.self_attn.eq_proj"), 8);
  EXPECT_DOUBLE_EQ(scale_of(config, q), 16.0);
  EXPECT_DOUBLE_EQ(scale_of(config, expert), 2.0);
  config.rslora = true;
  EXPECT_DOUBLE_EQ(scale_of(config, q), 32.0 / std::sqrt(2.0));
}

TEST(LoraTargets, AreNamedShortlyWhereThatIsExact) {
  const std::vector<std::string> all{"a.0.q", "a.0.k", "a.1.q", "a.1.k"};
  EXPECT_EQ(shortest_targets({"a.0.q", "a.1.q"}, all), std::vector<std::string>{"q"});
  EXPECT_EQ(shortest_targets({"a.0.q", "a.0.k", "a.1.k"}, all),
            (std::vector<std::string>{"a.0.q", "k"}));
}

TEST(LoraConfigValues, AreChecked) {
  LoraConfig config;
  config.all_linear = true;
  config.rank = 0;
  EXPECT_NE(error_of([&] { check(config); }).find("the rank is 0"), std::string::npos);
  config.rank = 1;
  config.dropout = 1;
  EXPECT_NE(error_of([&] { check(config); }).find("the dropout is 1"), std::string::npos);
  config.dropout = 0;
  config.alpha = -1;
  EXPECT_NE(error_of([&] { check(config); }).find("alpha is -1"), std::string::npos);
  config.alpha = 1;
  config.alpha_pattern = {{"q(", 2.0}};
  EXPECT_NE(error_of([&] { check(config); }).find("the pattern of modules \"q(\""),
            std::string::npos);
}

}  // namespace
}  // namespace onset::testing
