// Super weights and singular values: against models whose weight is zero, and a full decomposition.
#include "onset/massive/super_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

const std::vector<std::int64_t> prompt{3, 7, 1, 30, 12};

TEST(SuperWeights, ALookWithoutAWeightIsAModelThatHasZeroThere) {
  Toy toy;
  toy.draw(9);
  TemporaryFolder plain;
  toy.write(plain.path());
  const SuperWeightOptions options{.threshold = 0, .looks = 2};
  const SuperWeightResult found = find_super_weights(Model::open(plain.path()), prompt, options);
  ASSERT_EQ(found.looks.size(), 2U);
  const SuperWeight first = found.looks[0].found.value();
  auto& down =
      toy.values.at("model.layers." + std::to_string(first.layer) + ".mlp.down_proj.weight");
  float& weight = down[static_cast<std::size_t>(first.dim * 16 + first.neuron)];
  EXPECT_EQ(static_cast<float>(first.weight), weight);
  weight = 0;
  TemporaryFolder changed;
  toy.write(changed.path());
  const SuperWeightResult expected =
      find_super_weights(Model::open(changed.path()), prompt, options);
  for (std::size_t l = 0; l < 2; ++l) {
    const DownSpike& a = found.looks[1].layers[l];
    const DownSpike& b = expected.looks[0].layers[l];
    EXPECT_NEAR(a.output, b.output, 1e-5);
    EXPECT_EQ(a.dim, b.dim);
    EXPECT_EQ(a.opposes, b.opposes);
    if (a.layer == first.layer) continue;  // there the look passes over the channel
    EXPECT_NEAR(a.input, b.input, 1e-5);
    EXPECT_EQ(a.neuron, b.neuron);
  }
}

// In mixtures the module is named, and every layer has one.
TEST(SuperWeights, MixturesNameTheExpert) {
  for (const auto* name : {"mixtral", "deepseek_v2", "deepseek_v3"}) {
    const Model model = Model::open(onset::testing::data(std::string("models/") + name));
    const SuperWeightResult found = find_super_weights(model, prompt, {.threshold = 0, .looks = 3});
    ASSERT_EQ(found.looks.size(), 3U) << name;
    for (const SuperWeightLook& look : found.looks) {
      ASSERT_EQ(std::ssize(look.layers), model.config().layer_count()) << name;
      for (const DownSpike& spike : look.layers) {
        EXPECT_EQ(spike.module != "ffn", model.config().is_mixture(spike.layer)) << name;
      }
    }
    // A look without a weight has less of what that weight wrote.
    const SuperWeight first = found.looks[0].found.value();
    const DownSpike& again = found.looks[1].layers[static_cast<std::size_t>(first.layer)];
    if (again.dim == first.dim && again.module == first.module) {
      EXPECT_LE(std::fabs(again.output), std::fabs(first.output));
    }
  }
}

TEST(SuperWeights, NothingStandsOutOfARandomModel) {
  Toy toy;
  toy.draw();
  TemporaryFolder folder;
  toy.write(folder.path());
  const SuperWeightResult found = find_super_weights(Model::open(folder.path()), prompt);
  ASSERT_EQ(found.looks.size(), 1U);
  EXPECT_FALSE(found.looks[0].found.has_value());
}

TEST(Singular, EqualsAFullDecomposition) {
  for (const auto* name : {"llama", "gemma2", "llama_me"}) {
    const Model model = Model::open(onset::testing::data(std::string("models/") + name));
    const SingularReading found = read_singular(model, prompt, 1, 0, {2, 5});
    const at::Tensor weight =
        model.decoder().weights().layers[1].ffn.down.dense(at::kFloat).to(at::kDouble);
    const auto [u, s, vh] = at::linalg_svd(weight, false);
    EXPECT_NEAR(found.sigma1, s[0].item<double>(), 1e-6 * found.sigma1);
    EXPECT_NEAR(found.sigma2, s[1].item<double>(), 1e-4 * found.sigma1);
    EXPECT_NEAR(found.frobenius, s.norm().item<double>(), 1e-6 * found.frobenius);
    EXPECT_NEAR(found.energy_at_dims[1], u[5][0].square().item<double>(), 1e-4);
    EXPECT_GE(found.cosine, 0);
    EXPECT_LE(found.cosine, 1 + 1e-12);
  }
}

class Smollm2Super : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    model_.emplace(Model::open(path));
    const auto scans = OrderedJson::parse(read_file(onset::testing::data("smollm2/scan.json")));
    ids_ = scans.at("prompts")[0].at("ids").get<std::vector<std::int64_t>>();
  }
  std::optional<Model> model_;
  std::vector<std::int64_t> ids_;
};

TEST_F(Smollm2Super, TheFirstIsThatOfNeuron1229AndTheSecondLookFindsAnother) {
  const SuperWeightResult found = find_super_weights(*model_, ids_);
  ASSERT_GE(found.looks.size(), 2U);
  const SuperWeight first = found.looks[0].found.value();
  EXPECT_EQ(first.layer, 11);
  EXPECT_EQ(first.dim, 507);
  EXPECT_EQ(first.neuron, 1229);
  EXPECT_NEAR(first.weight, 5.87573242, 1e-5);
  EXPECT_NEAR(first.input, 2922.07, 0.3);
  EXPECT_NEAR(first.output, 23686.7, 2.4);
  // Without it neuron 1487 still writes 6,435 to the same dim.
  const DownSpike& second = found.looks[1].layers[11];
  EXPECT_EQ(second.dim, 507);
  EXPECT_NEAR(second.output, 23686.7 - 17169.3, 2.4);
  EXPECT_EQ(found.looks[1].found.value().neuron, 1487);
  EXPECT_EQ(found.looks[1].found.value().layer, 11);
  EXPECT_TRUE(found.looks[0].layers[28].opposes);
}

TEST_F(Smollm2Super, TheFfnOutputLiesAlongTheFirstSingularVector) {
  const SingularReading found = read_singular(*model_, ids_, 11, 0, {507});
  const at::Tensor weight =
      model_->decoder().weights().layers[11].ffn.down.dense(at::kFloat).to(at::kDouble);
  const at::Tensor s = at::linalg_svdvals(weight);
  EXPECT_NEAR(found.sigma1, s[0].item<double>(), 1e-6 * found.sigma1);
  EXPECT_NEAR(found.sigma2, s[1].item<double>(), 1e-4 * found.sigma1);
  EXPECT_GT(found.cosine, found.others_cosine);
}

}  // namespace
}  // namespace onset::testing
