// Passes over the first blocks only, and over tokens that stand alone.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

class FirstBlocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Toy toy;
    toy.config["num_attention_heads"] = 4;
    toy.config["num_key_value_heads"] = 2;
    toy.draw();
    toy.write(folder_.path());
    model_.emplace(Model::open(folder_.path()));
  }

  // The state after block 0, and how many blocks were run.
  at::Tensor after_first(std::span<const SequenceInput> batch, std::optional<std::int64_t> layers,
                         int& blocks) const {
    at::Tensor state;
    SiteSet sites(2);
    sites.add_all_layers(SiteKind::resid_post);
    Hooks hooks(2);
    hooks.observe(sites, [&](const SiteContext& context, const at::Tensor& tensor) {
      if (context.site.layer == 0) state = tensor;
      ++blocks;
    });
    static_cast<void>(model_->decoder().forward(batch, LogitRows::none, &hooks, layers));
    return state;
  }

  TemporaryFolder folder_;
  std::optional<Model> model_;
  c10::InferenceMode inference_;
};

TEST_F(FirstBlocksTest, AreThoseOfTheWholePass) {
  const std::vector<SequenceInput> batch{{.ids = {3, 7, 9}}, {.ids = {4}}};
  int whole = 0;
  int part = 0;
  const at::Tensor expected = after_first(batch, std::nullopt, whole);
  const at::Tensor found = after_first(batch, 1, part);
  EXPECT_EQ(whole, 2);
  EXPECT_EQ(part, 1);
  EXPECT_TRUE(at::equal(found, expected));
}

TEST_F(FirstBlocksTest, RefuseLogitsAndCaches) {
  KvCache cache = model_->decoder().new_cache();
  const std::vector<SequenceInput> plain{{.ids = {3}}};
  const std::vector<SequenceInput> cached{{.ids = {3}, .cache = &cache}};
  EXPECT_THROW(static_cast<void>(model_->decoder().forward(plain, LogitRows::all, nullptr, 1)),
               std::logic_error);
  EXPECT_THROW(static_cast<void>(model_->decoder().forward(cached, LogitRows::none, nullptr, 1)),
               std::logic_error);
}

// Tokens that stand alone take their own values; the first token of a longer sequence goes through
// the attention kernel, and sees itself alone as well.
TEST_F(FirstBlocksTest, LoneTokensEqualTheFirstOfALongerSequence) {
  const std::vector<SequenceInput> alone{{.ids = {3}}, {.ids = {8}}, {.ids = {31}}};
  const std::vector<SequenceInput> longer{{.ids = {3, 5}}, {.ids = {8, 2}}, {.ids = {31, 6}}};
  const at::Tensor found = model_->decoder().forward(alone, LogitRows::none).hidden;
  const at::Tensor states = model_->decoder().forward(longer, LogitRows::none).hidden;
  const at::Tensor expected = states.view({3, 2, -1}).select(1, 0);
  EXPECT_TRUE(close(found, expected, {.atol = 1e-6, .rtol = 1e-6}));
}

}  // namespace
}  // namespace onset::testing
