// Items answered by a model on another device than the CPU get the same scores and texts.
#include "eval/eval_support.h"
#include "support/test_devices.h"

namespace onset::testing {
namespace {

TEST(EvalOnTheFarDevice, GivesTheScoresOfTheCpu) {
  const SmallModel small;
  const Model far =
      Model::open(small.folder(), {.residency = Residency::resident, .device = far_device()});
  std::vector<EvalItem> items = choice_items();
  for (const EvalItem& item : generation_items(2)) items.push_back(item);
  const EvalOptions options{.mask = small_mask(small)};
  const auto expected = answer_items(small.model(), small.tokenizer(), items, options).answers;
  const std::int64_t before = far_operations();
  const auto found = answer_items(far, small.tokenizer(), items, options).answers;
  EXPECT_GT(far_operations(), before);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].loglik.size(), expected[i].loglik.size());
    for (std::size_t c = 0; c < found[i].loglik.size(); ++c) {
      EXPECT_NEAR(found[i].loglik[c], expected[i].loglik[c], 1e-4) << i << " " << c;
    }
    EXPECT_EQ(found[i].greedy, expected[i].greedy);
    EXPECT_EQ(found[i].text, expected[i].text);
  }
}

// What was computed on a GPU is not taken for what was computed on the CPU.
TEST(EvalOnTheFarDevice, HasACacheOfItsOwn) {
  const SmallModel small;
  const Model far =
      Model::open(small.folder(), {.residency = Residency::resident, .device = far_device()});
  const TemporaryFolder folder;
  const EvalOptions options{.cache = folder.path() / "cache"};
  static_cast<void>(answer_items(small.model(), small.tokenizer(), choice_items(), options));
  const auto again = answer_items(small.model(), small.tokenizer(), choice_items(), options);
  EXPECT_EQ(again.counts.computed_tokens, 0);
  const auto elsewhere = answer_items(far, small.tokenizer(), choice_items(), options);
  EXPECT_GT(elsewhere.counts.computed_tokens, 0);
}

}  // namespace
}  // namespace onset::testing
