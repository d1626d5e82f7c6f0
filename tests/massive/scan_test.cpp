// Detection on models with planted and without massive activations.
#include "onset/massive/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "onset/model/model.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

std::vector<ScanPrompt> reference_prompts(const std::string& fixture) {
  const ReferenceTensors tensors(
      onset::testing::data("models/" + fixture + "/reference.safetensors"));
  return {{"", tensors.ids("input_ids.a")}, {"", tensors.ids("input_ids.b")}};
}

ScanResult scan_fixture(const std::string& fixture, const ScanOptions& options = {}) {
  const Model model = Model::open(onset::testing::data("models/" + fixture));
  return scan(model, reference_prompts(fixture), options);
}

struct Planted {
  const char* fixture;
  std::vector<std::int64_t> dims;  // those that the rule admits
};

class PlantedTest : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedTest, TheLayerTheDimsAndTheFfnAreFound) {
  const ScanResult result = scan_fixture(GetParam().fixture);
  EXPECT_EQ(result.me_layer, 1);
  EXPECT_EQ(result.agreement, 1.0);
  EXPECT_EQ(result.massive_dims, GetParam().dims);
  ASSERT_EQ(result.massive_tokens.size(), 1U);
  EXPECT_TRUE(result.massive_tokens.front().first);
  const auto birth = std::find_if(
      result.stages.begin(), result.stages.end(),
      [](const Stage& stage) { return stage.layer == 1 && stage.kind == StageKind::rise; });
  ASSERT_NE(birth, result.stages.end());
  EXPECT_EQ(birth->dim, GetParam().dims.front());
  EXPECT_GT(birth->ffn_share.value(), 0.95);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PlantedTest,
                         ::testing::Values(Planted{"llama_me", {22}}, Planted{"qwen3_me", {22, 48}},
                                           Planted{"mistral_me", {17, 36}}),
                         [](const auto& parameter) {
                           return std::string(parameter.param.fixture);
                         });

class PlainTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PlainTest, RandomModelsHaveNoMeLayerAndACandidate) {
  const ScanResult result = scan_fixture(GetParam());
  EXPECT_FALSE(result.me_layer.has_value());
  EXPECT_EQ(result.agreement, 0.0);
  EXPECT_EQ(result.note, "below_rule");
  EXPECT_TRUE(result.massive_dims.empty());
  ASSERT_TRUE(result.candidate.has_value());
  // The candidate is the layer nearest to the rule.
  double best = 0;
  for (const PromptScan& prompt : result.prompts) {
    for (const LayerStatistics& layer : prompt.layers) best = std::max(best, layer.ratio());
  }
  EXPECT_EQ(result.candidate->ratio, best);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PlainTest,
                         ::testing::Values("llama", "llama3", "mistral", "qwen2", "qwen3",
                                           "llama_gguf", "phi3", "phi3_long", "gemma2", "gemma3",
                                           "olmo2"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(Wemask, DoesNotApplyWhereThereIsNoNormBeforeAttention) {
  const auto obstacle = [](const char* fixture) {
    return wemask_obstacle(
        Model::open(onset::testing::data(std::string("models/") + fixture)).config());
  };
  EXPECT_EQ(obstacle("llama"), std::nullopt);
  EXPECT_EQ(obstacle("gemma2"), std::nullopt);
  EXPECT_NE(obstacle("olmo2").value_or("").find("no norm before attention"), std::string::npos);
}

// Row 32: layers count from 0, the state is the true residual stream, the site that wrote is named.
// The FFN of layer 1 writes 1e3 into dim 3 of whatever token has a large entry in dim 6.
class SpikeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    toy_.draw();
    std::vector<float>& embedding = toy_.values["model.embed_tokens.weight"];
    for (std::size_t token = 0; token < 32; ++token) {
      for (std::size_t d = 0; d < 8; ++d) embedding[token * 8 + d] *= 0.01F;
      embedding[token * 8 + 6] = token == 1 ? 1.0F : 0.0F;  // token 1 carries the key
    }
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      for (float& value : toy_.values[layer + "self_attn.o_proj.weight"]) value = 0;
      for (float& value : toy_.values[layer + "mlp.down_proj.weight"]) value *= 1e-6F;
    }
    // Neuron 5 of layer 1 reads dim 6 alone and writes dim 3 alone.
    const auto row = [&](const std::string& name, std::size_t neuron, float key) {
      std::vector<float>& weight = toy_.values["model.layers.1.mlp." + name];
      for (std::size_t d = 0; d < 8; ++d) weight[neuron * 8 + d] = d == 6 ? key : 0.0F;
    };
    row("gate_proj.weight", 5, 10.0F);
    row("up_proj.weight", 5, 10.0F);
    std::vector<float>& down = toy_.values["model.layers.1.mlp.down_proj.weight"];
    for (std::size_t d = 0; d < 8; ++d) down[d * 16 + 5] = d == 3 ? scale_ : 0.0F;
  }

  ScanResult run(const ScanOptions& options = {}) {
    toy_.write(folder_.path());
    return scan(Model::open(folder_.path()), {{"", {1, 4, 5, 7, 9, 11}}}, options);
  }

  float scale_ = 1.25F;
  Toy toy_;
  TemporaryFolder folder_;
};

TEST_F(SpikeTest, ASpikeOfTheSecondFfnIsReportedAtLayer1AndFfnOut) {
  const ScanResult result = run();
  ASSERT_EQ(result.me_layer, 1);
  EXPECT_EQ(result.massive_dims, (std::vector<std::int64_t>{3}));
  ASSERT_EQ(result.stages.size(), 1U);
  const Stage& stage = result.stages.front();
  EXPECT_EQ(stage.layer, 1);
  EXPECT_EQ(stage.dim, 3);
  EXPECT_GT(stage.ffn_share.value(), 0.99);
  // The last row is the residual stream itself: the final norm would bring it below sqrt(D) times
  // its gain.
  EXPECT_GT(std::fabs(result.prompts[0].layers.back().largest.value), 500.0F);
  EXPECT_EQ(result.prompts[0].layers.size(), 2U);
}

TEST_F(SpikeTest, TheAbsoluteRuleMissesAScaledDownModelAndSaysSo) {
  // The same function at a hundredth of the scale: embedding, o_proj and down_proj alike.
  for (auto& [name, tensor] : toy_.values) {
    const bool writes = name.find("embed_tokens") != std::string::npos ||
                        name.find("o_proj") != std::string::npos ||
                        name.find("down_proj") != std::string::npos;
    for (float& value : tensor) value *= writes ? 0.01F : 1.0F;
  }
  toy_.config["rms_norm_eps"] = 1e-10;
  const ScanResult absolute = run();
  EXPECT_FALSE(absolute.me_layer.has_value());
  EXPECT_NE(absolute.rule_disagreement.find("layer 1"), std::string::npos);
  const ScanResult relative = run({.rule = ScanRule::relative});
  EXPECT_EQ(relative.me_layer, 1);
  EXPECT_NE(relative.rule_disagreement, "");
}

TEST_F(SpikeTest, ThresholdsDecide) {
  EXPECT_FALSE(run({.min_abs = 1e6}).me_layer.has_value());
  EXPECT_FALSE(run({.min_ratio = 1e12}).me_layer.has_value());
  EXPECT_EQ(run({.min_abs = 0, .min_ratio = 0}).me_layer, 0) << "everything is massive then";
}

TEST_F(SpikeTest, TopListsWhatIsAskedAndNoMoreThanThereIs) {
  EXPECT_EQ(run({.top = 3}).prompts[0].layers[0].top.size(), 3U);
  EXPECT_TRUE(run({.top = 0}).prompts[0].layers[0].top.empty());
  const auto all = run({.top = std::int64_t{1} << 60}).prompts[0].layers[0].top;
  EXPECT_EQ(all.size(), 6U * 8U);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const StateEntry& a, const StateEntry& b) {
    return std::fabs(a.value) > std::fabs(b.value);
  }));
}

TEST_F(SpikeTest, ALongerBatchChangesNoPrompt) {
  toy_.write(folder_.path());
  const Model model = Model::open(folder_.path());
  const ScanResult alone = scan(model, {{"", {1, 4, 5, 7}}}, {});
  const ScanResult together = scan(model, {{"", {9, 9, 1}}, {"", {1, 4, 5, 7}}, {"", {2, 3}}}, {});
  for (std::size_t l = 0; l < 2; ++l) {
    EXPECT_NEAR(together.prompts[1].layers[l].largest.value,
                alone.prompts[0].layers[l].largest.value, 1e-3);
    EXPECT_EQ(together.prompts[1].layers[l].median_abs, alone.prompts[0].layers[l].median_abs);
  }
}

TEST_F(SpikeTest, ATokenOtherThanTheFirstIsNamed) {
  toy_.write(folder_.path());
  const ScanResult result = scan(Model::open(folder_.path()), {{"", {4, 1, 5, 7, 9, 11}}}, {});
  ASSERT_EQ(result.me_layer, 1);
  ASSERT_EQ(result.massive_tokens.size(), 1U);
  EXPECT_FALSE(result.massive_tokens.front().first);
  EXPECT_EQ(result.massive_tokens.front().position, 1);
  EXPECT_EQ(result.massive_tokens.front().id, 1);
}

TEST_F(SpikeTest, WeightsWithNanAreAnErrorThatNamesTheLayer) {
  toy_.values["model.layers.1.mlp.up_proj.weight"][3] = std::numeric_limits<float>::quiet_NaN();
  const std::string error = error_of([&] { static_cast<void>(run()); });
  EXPECT_NE(error.find("layer 1"), std::string::npos) << error;
  EXPECT_NE(error.find("nan"), std::string::npos) << error;
}

TEST_F(SpikeTest, ListsEndAtALimitAndCountsDoNot) {
  // 2000 tokens with three entries of 200, one of 50 and four tiny ones, and blocks that add
  // nothing: 3 * 2000 entries pass both thresholds. A list ends at 4096.
  const std::int64_t repeats = 2000;
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (float& value : toy_.values[layer + "self_attn.o_proj.weight"]) value = 0;
    for (float& value : toy_.values[layer + "mlp.down_proj.weight"]) value = 0;
  }
  std::vector<float>& embedding = toy_.values["model.embed_tokens.weight"];
  for (std::size_t token = 0; token < 32; ++token) {
    for (std::size_t d = 0; d < 8; ++d) {
      embedding[token * 8 + d] = d < 3 ? 200.0F : d == 3 ? 50.0F : 1e-6F;
    }
  }
  toy_.write(folder_.path());
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < repeats; ++i) ids.push_back(i % 32);
  const ScanResult result = scan(Model::open(folder_.path()), {{"", ids}}, {});
  const LayerStatistics& layer = result.prompts[0].layers[0];
  EXPECT_EQ(layer.massive_count, 3 * repeats);
  EXPECT_EQ(layer.massive_entries.size(), 4096U);
}

TEST_F(SpikeTest, AllZeroWeightsHaveARatioOfZero) {
  for (auto& [name, tensor] : toy_.values) std::fill(tensor.begin(), tensor.end(), 0.0F);
  const ScanResult result = run();
  EXPECT_FALSE(result.me_layer.has_value());
  EXPECT_EQ(result.candidate.value().ratio, 0.0);
}

TEST_F(SpikeTest, EmptyPromptsAreRefused) {
  toy_.write(folder_.path());
  const Model model = Model::open(folder_.path());
  EXPECT_NE(error_of([&] { static_cast<void>(scan(model, {}, {})); }), "");
  EXPECT_NE(error_of([&] { static_cast<void>(scan(model, {{"", {}}}, {})); }), "");
}

}  // namespace
}  // namespace onset::testing
