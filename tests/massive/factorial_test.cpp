// The factorial experiment: its cells against models whose weights were changed instead, and on
// SmolLM2 against what is known of it.
#include "onset/massive/factorial.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

const std::vector<std::int64_t> prompt{3, 7, 1, 30, 12};

Toy drawn() {
  Toy toy;
  toy.draw(5);
  return toy;
}

FactorialQuestion question_of(std::int64_t layer) {
  FactorialQuestion question;
  question.layer = layer;
  question.prompts = {{.ids = prompt, .token = 0}};
  return question;
}

const FactorialCell& cell(const FactorialResult& result, double a, FfnChange ffn) {
  for (const FactorialCell& found : result.cells) {
    if (found.a == a && found.ffn == ffn) return found;
  }
  throw std::runtime_error("no such cell");
}

TEST(Factorial, AFlattenedNormIsAModelWithThoseGains) {
  TemporaryFolder plain;
  drawn().write(plain.path());
  const FactorialResult found = run_factorial(Model::open(plain.path()), question_of(1));
  for (const double a : {0.5, 0.0}) {
    Toy toy = drawn();
    auto& gain = toy.values.at("model.layers.1.post_attention_layernorm.weight");
    const float mean =
        std::accumulate(gain.begin(), gain.end(), 0.0F) / static_cast<float>(gain.size());
    for (float& value : gain) value = mean + static_cast<float>(a) * (value - mean);
    TemporaryFolder changed;
    toy.write(changed.path());
    const FactorialResult expected = run_factorial(Model::open(changed.path()), question_of(1));
    for (const FfnChange ffn :
         {FfnChange::as_is, FfnChange::normalised, FfnChange::clamped, FfnChange::capped}) {
      const FactorialCell& by_hook = cell(found, a, ffn);
      const FactorialCell& by_weight = cell(expected, 1.0, ffn);
      EXPECT_NEAR(by_hook.at_layer, by_weight.at_layer, 1e-4) << ffn_change_name(ffn);
      EXPECT_NEAR(by_hook.of_token, by_weight.of_token, 1e-4);
    }
  }
}

TEST(Factorial, InteractionsFollowFromTheCells) {
  TemporaryFolder folder;
  drawn().write(folder.path());
  const FactorialResult found = run_factorial(Model::open(folder.path()), question_of(0));
  EXPECT_EQ(found.cells.size(), 12U);
  ASSERT_EQ(found.interactions.size(), 6U);
  for (const Interaction& interaction : found.interactions) {
    const double ratio = cell(found, 1, FfnChange::as_is).at_layer *
                         cell(found, interaction.a, interaction.ffn).at_layer /
                         (cell(found, 1, interaction.ffn).at_layer *
                          cell(found, interaction.a, FfnChange::as_is).at_layer);
    EXPECT_NEAR(interaction.value, std::log(ratio), 1e-9);
  }
}

// What the FFN variants leave, seen by an observer behind them.
TEST(Factorial, ProductsAreNormalisedOrClampedAndOutputsCapped) {
  TemporaryFolder folder;
  drawn().write(folder.path());
  const Model model = Model::open(folder.path());
  const c10::InferenceMode inference;
  const auto seen = [&](FfnChange change, SiteKind kind) {
    Hooks hooks(2);
    factorial_cell(model, 1, 1.0, change, 1.25)(hooks);
    SiteSet sites(2);
    sites.add({kind, 1});
    at::Tensor state;
    hooks.observe(sites, [&](const SiteContext&, const at::Tensor& t) { state = t; });
    const std::vector<SequenceInput> batch{{.ids = prompt}, {.ids = {9, 8, 2}}};
    static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
    return state;
  };
  const auto rms = [](const at::Tensor& x) { return x.square().mean(1).sqrt(); };
  const at::Tensor plain = seen(FfnChange::as_is, SiteKind::ffn_product);
  EXPECT_TRUE(close(rms(seen(FfnChange::normalised, SiteKind::ffn_product)), at::ones({8}),
                    {.atol = 1e-5}));
  // The lower median of five, then of three.
  const at::Tensor limits = at::cat({std::get<0>(rms(plain).narrow(0, 0, 5).sort())[2].expand(5),
                                     std::get<0>(rms(plain).narrow(0, 5, 3).sort())[1].expand(3)});
  EXPECT_TRUE(close(rms(seen(FfnChange::clamped, SiteKind::ffn_product)),
                    at::minimum(rms(plain), limits), {.atol = 1e-5}));
  const at::Tensor out = seen(FfnChange::as_is, SiteKind::ffn_out).norm(2, 1);
  const at::Tensor caps = at::cat({std::get<0>(out.narrow(0, 0, 5).sort())[2].expand(5),
                                   std::get<0>(out.narrow(0, 5, 3).sort())[1].expand(3)}) *
                          1.25;
  EXPECT_TRUE(close(seen(FfnChange::capped, SiteKind::ffn_out).norm(2, 1), at::minimum(out, caps),
                    {.atol = 1e-5}));
}

// Seen from behind, every expert's product of every row is normalised, the shared one's too.
TEST(Factorial, ProductsOfExpertsAreNormalised) {
  const Model model = Model::open(onset::testing::data("models/deepseek_v2"));
  const c10::InferenceMode inference;
  const std::int64_t layers = model.config().layer_count();
  Hooks hooks(layers);
  factorial_cell(model, layers - 1, 0.0, FfnChange::normalised, 2)(hooks);
  SiteSet sites(layers);
  sites.add({SiteKind::expert_product, layers - 1});
  sites.add({SiteKind::shared_product, layers - 1});
  int seen = 0;
  hooks.observe(sites, [&](const SiteContext&, const at::Tensor& product) {
    EXPECT_TRUE(
        close(product.square().mean(1).sqrt(), at::ones({product.size(0)}), {.atol = 1e-4}));
    ++seen;
  });
  const std::vector<SequenceInput> batch{{.ids = prompt}};
  static_cast<void>(model.decoder().forward(batch, LogitRows::none, &hooks));
  EXPECT_GE(seen, 2);
}

TEST(Factorial, WithoutANormBeforeTheFfnOnlyTheFfnChanges) {
  const auto folder = onset::testing::data("models/olmo2");
  FactorialQuestion question = question_of(1);
  const FactorialResult found = run_factorial(Model::open(folder), question);
  EXPECT_FALSE(found.norm_can_change);
  EXPECT_EQ(found.cells.size(), 4U);
  EXPECT_TRUE(found.interactions.empty());
}

TEST(Factorial, OnSmollm2TheFfnMakesTheMassiveValue) {
  const auto path = demo_model();
  if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
  const auto scans = OrderedJson::parse(read_file(onset::testing::data("smollm2/scan.json")));
  FactorialQuestion question = question_of(11);
  question.prompts[0].ids = scans.at("prompts")[0].at("ids").get<std::vector<std::int64_t>>();
  const FactorialResult found = run_factorial(Model::open(path), question);
  EXPECT_NEAR(cell(found, 1, FfnChange::as_is).at_layer, 23738, 24);
  EXPECT_NEAR(cell(found, 1, FfnChange::as_is).of_token, 23738, 24);
  // Two times the median token's ffn_out (27) is no room for a massive value.
  EXPECT_LT(cell(found, 1, FfnChange::capped).of_token, 120);
  EXPECT_LT(cell(found, 1, FfnChange::clamped).of_token, 200);
  EXPECT_EQ(cell(found, 1, FfnChange::as_is).by_layer.size(), 30U);
}

}  // namespace
}  // namespace onset::testing
