// A super expert (Su et al. 2507.23279): one expert whose output matrix is made so that the first
// token gets a massive entry from it. What it adds follows from how it was made.
#include "support/super_expert.h"

#include <gtest/gtest.h>

#include "onset/massive/scan.h"

namespace onset::testing {
namespace {

const std::vector<std::int64_t>& prompt = planted_prompt;

class SuperExpert : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] ScanResult scanned(const std::vector<ExpertId>& without) const {
    ScanOptions options;
    options.without_experts = without;
    // The tiny random models have other large entries than real ones.
    options.min_ratio = 300;
    return scan(Model::open(model_.path()), {{"", prompt}}, options);
  }

  SuperExpertModel model_{GetParam()};
  std::int64_t expert_ = model_.expert();
};

TEST_P(SuperExpert, IsFoundAndNamed) {
  const ScanResult result = scanned({});
  ASSERT_EQ(result.me_layer, planted_layer);
  ASSERT_FALSE(result.stages.empty());
  const auto stage = std::find_if(result.stages.begin(), result.stages.end(),
                                  [](const Stage& s) { return s.layer == planted_layer; });
  ASSERT_NE(stage, result.stages.end());
  EXPECT_EQ(stage->token, 0);
  EXPECT_EQ(stage->dim, planted_dim);
  EXPECT_EQ(stage->experts.front().expert, expert_);
  EXPECT_NEAR(stage->experts.front().value, model_.adds(), 1e-4F * model_.adds());
  EXPECT_EQ(main_expert(*stage), "expert " + std::to_string(expert_));
  float sum = stage->shared_out.value_or(0.0F);
  for (const ExpertPart& part : stage->experts) sum += part.value;
  EXPECT_NEAR(sum, stage->ffn_out, 1e-5F * std::fabs(stage->ffn_out));
}

TEST_P(SuperExpert, SwitchedOffTheMassiveActivationIsGone) {
  const ScanResult result = scanned({{planted_layer, expert_}});
  EXPECT_FALSE(result.me_layer.has_value());
  for (const LayerStatistics& layer : result.prompts.front().layers) {
    EXPECT_LT(std::fabs(layer.largest.value), 100.0F) << "layer " << layer.layer;
  }
}

TEST_P(SuperExpert, AnotherOneSwitchedOffItStays) {
  const std::int64_t other = expert_ == 0 ? 1 : 0;
  EXPECT_EQ(scanned({{planted_layer, other}}).me_layer, planted_layer);
}

INSTANTIATE_TEST_SUITE_P(Mixtures, SuperExpert,
                         ::testing::Values("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(WithoutExperts, OneThatIsNotThereIsAUsageError) {
  const auto refusal = [](const char* fixture, ExpertId id) {
    return error_of([&] {
      ScanOptions options;
      options.without_experts = {id};
      static_cast<void>(scan(Model::open(onset::testing::data(std::string("models/") + fixture)),
                             {{"", prompt}}, options));
    });
  };
  EXPECT_NE(refusal("llama", {1, 0}).find("llama is no mixture"), std::string::npos);
  EXPECT_NE(refusal("mixtral", {3, 0}).find("layers 0 to 2"), std::string::npos);
  EXPECT_NE(refusal("mixtral", {1, 4}).find("experts 0 to 3"), std::string::npos);
  EXPECT_NE(refusal("deepseek_v3", {0, 0}).find("is dense"), std::string::npos);
}

}  // namespace
}  // namespace onset::testing
