// Other ways in which files of mixtures are laid out: experts in stacks, another block name, layers
// behind the model's own. The fixtures rewritten so are the same models.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <functional>

#include "onset/model/decoder.h"
#include "support/fixture_copy.h"
#include "support/support.h"
#include "support/tensors.h"

namespace onset::testing {
namespace {

const std::vector<std::int64_t> ids{1, 7, 9, 40, 99, 3, 12, 5};
// Products round by where in a file their weights lie.
constexpr Tolerance rounding{.atol = 1e-5, .rtol = 1e-5};

at::Tensor logits_of(const std::filesystem::path& path) {
  const c10::InferenceMode inference;
  const std::vector<SequenceInput> batch{{.ids = ids}};
  return Model::open(path).decoder().forward(batch, LogitRows::all).logits;
}

at::Tensor logits_of(const Toy& toy) {
  const TemporaryFolder folder;
  toy.write(folder.path());
  return logits_of(folder.path());
}

void rename(Toy& toy, const std::string& from, const std::string& to) {
  toy.values[to] = std::move(toy.values.at(from));
  toy.shapes[to] = toy.shapes.at(from);
  toy.remove(from);
}

// [E, ..] from what `parts` name of each expert, one above the other.
void stack(Toy& toy, const std::string& block, std::int64_t experts,
           const std::vector<std::string>& parts, const std::string& name) {
  std::vector<float> values;
  std::vector<std::int64_t> shape;
  for (std::int64_t e = 0; e < experts; ++e) {
    std::int64_t rows = 0;
    for (const std::string& part : parts) {
      const std::string each = block + ".experts." + std::to_string(e) + "." + part + ".weight";
      values.insert(values.end(), toy.values.at(each).begin(), toy.values.at(each).end());
      rows += toy.shapes.at(each).front();
      shape = {experts, rows, toy.shapes.at(each).back()};
      toy.remove(each);
    }
  }
  toy.values[block + ".experts." + name] = std::move(values);
  toy.shapes[block + ".experts." + name] = std::move(shape);
}

// Every mixture's experts as gate_up_proj and down_proj, as transformers holds them since 5.0.
Toy stacked(const std::string& fixture, std::int64_t experts) {
  Toy toy = copy_of_fixture(fixture);
  const bool mixtral = fixture == "mixtral";
  for (std::int64_t l = 0; l < 3; ++l) {
    const std::string block =
        "model.layers." + std::to_string(l) + (mixtral ? ".block_sparse_moe" : ".mlp");
    if (!toy.values.contains(block + ".gate.weight")) continue;
    const auto names = mixtral ? std::vector<std::string>{"w1", "w3", "w2"}
                               : std::vector<std::string>{"gate_proj", "up_proj", "down_proj"};
    stack(toy, block, experts, {names[0], names[1]}, "gate_up_proj");
    stack(toy, block, experts, {names[2]}, "down_proj");
  }
  return toy;
}

TEST(MixtureFiles, ExpertsInStacksAreTheSameModel) {
  for (const auto& [fixture, experts] :
       {std::pair{"mixtral", 4}, std::pair{"qwen2_moe", 6}, std::pair{"qwen3_moe", 8},
        std::pair{"deepseek_v2", 8}, std::pair{"deepseek_v3", 8}}) {
    const at::Tensor expected = logits_of(onset::testing::data(std::string("models/") + fixture));
    EXPECT_TRUE(close(logits_of(stacked(fixture, experts)), expected, rounding)) << fixture;
  }
}

TEST(MixtureFiles, MixtralsBlockUnderTheCommonName) {
  const at::Tensor expected = logits_of(onset::testing::data("models/mixtral"));
  for (Toy toy : {copy_of_fixture("mixtral"), stacked("mixtral", 4)}) {
    std::vector<std::string> names;
    for (const auto& [name, values] : toy.values) names.push_back(name);
    for (const std::string& name : names) {
      const std::string block = ".block_sparse_moe.";
      const std::size_t at = name.find(block);
      if (at == std::string::npos) continue;
      rename(toy, name, std::string(name).replace(at, block.size(), ".mlp."));
    }
    EXPECT_TRUE(close(logits_of(toy), expected, rounding));
  }
}

TEST(MixtureFiles, AnExpertThatIsMissingIsNamed) {
  for (const auto& [fixture, name] :
       {std::pair{"mixtral", "model.layers.1.block_sparse_moe.experts.3.w2.weight"},
        std::pair{"qwen3_moe", "model.layers.2.mlp.experts.5.up_proj.weight"},
        std::pair{"qwen2_moe", "model.layers.0.mlp.shared_expert_gate.weight"},
        std::pair{"qwen2_moe", "model.layers.2.mlp.shared_expert.up_proj.weight"},
        std::pair{"deepseek_v3", "model.layers.1.mlp.gate.e_score_correction_bias"},
        std::pair{"deepseek_v3", "model.layers.1.mlp.gate.weight"},
        std::pair{"deepseek_v2", "model.layers.0.self_attn.kv_b_proj.weight"},
        std::pair{"deepseek_v3", "model.layers.2.mlp.experts.0.gate_proj.weight"}}) {
    Toy toy = copy_of_fixture(fixture);
    ASSERT_TRUE(toy.values.contains(name));
    toy.remove(name);
    const std::string error = error_of([&] { static_cast<void>(logits_of(toy)); });
    EXPECT_NE(error.find(name), std::string::npos) << error;
  }
}

TEST(MixtureFiles, AnExpertOfAnotherShapeIsNamedWithBothShapes) {
  Toy toy = copy_of_fixture("qwen3_moe");
  const std::string name = "model.layers.2.mlp.experts.5.up_proj.weight";
  toy.shapes[name] = {48, 32};
  std::string error = error_of([&] { static_cast<void>(logits_of(toy)); });
  EXPECT_NE(error.find(name + " has shape [48, 32], expected [32, 48]"), std::string::npos)
      << error;
  toy = stacked("qwen3_moe", 8);
  const std::string whole = "model.layers.1.mlp.experts.gate_up_proj";
  toy.shapes[whole] = {8, 32, 96};
  error = error_of([&] { static_cast<void>(logits_of(toy)); });
  EXPECT_NE(error.find(whole + " has shape [8, 32, 96], expected [8, 64, 48]"), std::string::npos)
      << error;
}

// DeepSeek-V3's files hold a layer more, which predicts the token after the next.
TEST(MixtureFiles, LayersForFurtherTokensAreLeftAlone) {
  const at::Tensor expected = logits_of(onset::testing::data("models/deepseek_v3"));
  Toy toy = copy_of_fixture("deepseek_v3");
  std::vector<std::string> names;
  for (const auto& [name, values] : toy.values) names.push_back(name);
  const std::string last = "model.layers.2.";
  const std::string further = "model.layers.3.";
  for (const std::string& name : names) {
    if (!name.starts_with(last)) continue;
    const std::string copy = further + name.substr(last.size());
    toy.values[copy] = toy.values.at(name);
    toy.shapes[copy] = toy.shapes.at(name);
  }
  for (const std::string norm : {"enorm.weight", "hnorm.weight", "shared_head.norm.weight"}) {
    toy.values[further + norm].assign(48, 1.0F);
    toy.shapes[further + norm] = {48};
  }
  toy.values[further + "eh_proj.weight"].assign(48 * 96, 1.0F);
  toy.shapes[further + "eh_proj.weight"] = {48, 96};
  const std::string error = error_of([&] { static_cast<void>(logits_of(toy)); });
  EXPECT_NE(error.find("model.layers.3.self_attn.o_proj.weight"), std::string::npos) << error;
  EXPECT_NE(error.find("3 layers"), std::string::npos) << error;
  toy.config["num_nextn_predict_layers"] = 1;
  EXPECT_TRUE(close(logits_of(toy), expected, rounding));
}

// Where transformers saved the model again, the key stays and the layers are gone.
TEST(MixtureFiles, LayersForFurtherTokensNeedNotBeThere) {
  Toy toy = copy_of_fixture("deepseek_v3");
  toy.config["num_nextn_predict_layers"] = 1;
  EXPECT_TRUE(
      close(logits_of(toy), logits_of(onset::testing::data("models/deepseek_v3")), rounding));
}

}  // namespace
}  // namespace onset::testing
