// Row 6 of the faults that users met: what an item is batched with changes nothing of its score.
// The expected scores are those of whole sequences, each in a pass of its own.
#include "onset/eval/engine.h"

#include <algorithm>
#include <cmath>

#include "eval/eval_support.h"

namespace onset::testing {
namespace {

class EvalEngine : public ::testing::Test {
 protected:
  void expect_plain(const std::vector<EvalItem>& items, const EvalOptions& options,
                    double tolerance = 1e-4) const {
    const EvalResult result = answer_items(small_.model(), small_.tokenizer(), items, options);
    ASSERT_EQ(result.answers.size(), items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto expected = plain_scores(small_, items[i], options.mask.get());
      ASSERT_EQ(result.answers[i].loglik.size(), expected.size());
      for (std::size_t c = 0; c < expected.size(); ++c) {
        EXPECT_NEAR(result.answers[i].loglik[c], expected[c].loglik, tolerance) << i << " " << c;
        EXPECT_EQ(result.answers[i].greedy[c], expected[c].greedy) << i << " " << c;
      }
    }
  }
  [[nodiscard]] std::vector<ItemAnswer> answers(const std::vector<EvalItem>& items,
                                                const EvalOptions& options = {}) const {
    return answer_items(small_.model(), small_.tokenizer(), items, options).answers;
  }

  SmallModel small_;
  std::vector<EvalItem> items_ = choice_items();
};

TEST_F(EvalEngine, ScoresAreThoseOfWholeSequencesAloneWhateverTheBatch) {
  for (const std::int64_t tokens : {1, 30, 100, 4096})
    expect_plain(items_, {.batch_tokens = tokens});
  std::reverse(items_.begin(), items_.end());
  expect_plain(items_, {});
}

TEST_F(EvalEngine, ThreeDocumentsOfTwoFiveAndNineTokensInOneBatchAndAlone) {
  std::vector<EvalItem> items;
  for (const std::size_t length : {std::size_t{2}, std::size_t{5}, std::size_t{9}}) {
    items.push_back({.context = std::string("qrs").substr(0, 1),
                     .choices = {{std::string("bcdfghjk").substr(0, length - 1), ""}}});
  }
  expect_plain(items, {.batch_tokens = 4096}, 1e-5);
  expect_plain(items, {.batch_tokens = 1}, 1e-5);
}

TEST_F(EvalEngine, MasksApplyToTheFirstTokenOfEverySequence) {
  for (const MaskTokens tokens : {MaskTokens::first, MaskTokens::positions, MaskTokens::massive}) {
    for (const MaskPlacement placement : {MaskPlacement::post_norm, MaskPlacement::pre_norm}) {
      const auto mask = small_mask(small_, {.placement = placement,
                                            .tokens = tokens,
                                            .positions = tokens == MaskTokens::positions
                                                             ? std::vector<std::int64_t>{0, 3, 50}
                                                             : std::vector<std::int64_t>{},
                                            .k = 16,
                                            .from_layer = 0,
                                            .massive_dims = {1, 2, 3},
                                            .massive_threshold = 0.3});
      expect_plain(items_, {.mask = mask});
      expect_plain(items_, {.mask = mask, .batch_tokens = 40});
      const auto unmasked = plain_scores(small_, items_.front());
      const auto masked = plain_scores(small_, items_.front(), mask.get());
      EXPECT_GT(std::abs(unmasked[0].loglik - masked[0].loglik), 1e-3);
    }
  }
}

// The released code masks the first position of each chunk, and averages activations over a batch.
TEST_F(EvalEngine, TheReleasedCodesMaskSeesWholeSequencesAlone) {
  for (const MaskCriterion criterion : {MaskCriterion::activation, MaskCriterion::weight}) {
    expect_plain(items_,
                 {.mask = small_mask(small_, {.criterion = criterion, .official_compat = true})});
  }
}

TEST_F(EvalEngine, SharedBeginningsAreComputedOnce) {
  const EvalCounts counts = answer_items(small_.model(), small_.tokenizer(), items_).counts;
  EXPECT_EQ(counts.answered, static_cast<std::int64_t>(items_.size()));
  // The tokens of four letters behind one context are one sequence, and the examples are shared.
  EXPECT_LT(counts.computed_tokens * 3, counts.asked_tokens);
}

TEST_F(EvalEngine, ItemsThatAskTheSameAreComputedOnce) {
  const std::int64_t once =
      answer_items(small_.model(), small_.tokenizer(), items_).counts.computed_tokens;
  auto twice = items_;
  twice.insert(twice.end(), items_.begin(), items_.end());
  const EvalResult result = answer_items(small_.model(), small_.tokenizer(), twice);
  EXPECT_EQ(result.counts.computed_tokens, once);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    EXPECT_EQ(result.answers[i].loglik, result.answers[i + items_.size()].loglik);
  }
}

TEST_F(EvalEngine, OverlongItemsAreCutSkippedOrRefused) {
  const std::vector<EvalItem> items{items_[4], items_[0]};
  const auto whole = answers(items);
  const std::int64_t longest = whole[1].context_tokens - 10;
  ASSERT_GT(longest, whole[0].context_tokens + whole[0].choice_tokens[0]);

  const auto skipped = answers(items, {.overlong = Overlong::skip, .context = longest});
  EXPECT_FALSE(skipped[0].skipped);
  EXPECT_EQ(skipped[0].loglik.size(), 4U);
  EXPECT_TRUE(skipped[1].skipped);
  EXPECT_TRUE(skipped[1].loglik.empty());
  EXPECT_EQ(skipped[1].context_tokens, whole[1].context_tokens);

  const EvalResult cut =
      answer_items(small_.model(), small_.tokenizer(), items, {.context = longest});
  EXPECT_FALSE(cut.answers[0].cut);
  EXPECT_TRUE(cut.answers[1].cut);
  EXPECT_EQ(cut.counts.cut, 1);
  // What is left is the end of the context, less where a choice's own tokens need the room.
  const auto ids = ItemEncoder(small_.tokenizer(), std::nullopt).pairs(items[1]).front().context;
  for (std::size_t c = 0; c < items[1].choices.size(); ++c) {
    const std::int64_t read = cut.answers[1].choice_tokens[c] - 1;
    const std::vector<TokenId> kept(ids.end() - (longest - read), ids.end());
    EvalItem shortened = items[1];
    shortened.context = small_.tokenizer().decode(kept);
    EXPECT_NEAR(cut.answers[1].loglik[c], plain_scores(small_, shortened)[c].loglik, 1e-4) << c;
  }

  const std::string message = error_of([&] {
    static_cast<void>(answers(items, {.overlong = Overlong::error, .context = longest}));
  });
  EXPECT_NE(message.find("item 0 needs"), std::string::npos) << message;
  EXPECT_THROW(static_cast<void>(answers(items, {.context = 3})), Error);
  EXPECT_EQ(parse_overlong("skip"), Overlong::skip);
  EXPECT_EQ(name_of(Overlong::truncate), "truncate");
  EXPECT_THROW(static_cast<void>(parse_overlong("cut")), Error);
}

TEST_F(EvalEngine, GeneratesAsTheGeneratorDoes) {
  const auto items = generation_items();
  const auto found = answers(items, {.generation_rows = 2});
  const auto alone = answers(items, {.generation_rows = 1});
  for (std::size_t i = 0; i < items.size(); ++i) {
    Generator generator(small_.model(), &small_.tokenizer());
    const auto ids = ItemEncoder(small_.tokenizer(), std::nullopt).prompt(items[i]);
    const std::vector<GenerationRequest> requests{
        {.ids = ids, .max_new_tokens = items[i].max_new_tokens, .sampling = {.temperature = 0.0}}};
    const Completion expected = generate_all(generator, requests).front().front();
    EXPECT_EQ(found[i].text, expected.text);
    EXPECT_EQ(alone[i].text, expected.text);
    EXPECT_EQ(found[i].finish, expected.finish);
    EXPECT_EQ(found[i].truncated, expected.finish == FinishReason::length);
    EXPECT_EQ(found[i].new_tokens, static_cast<std::int64_t>(expected.tokens.size()));
    EXPECT_EQ(found[i].context_tokens, static_cast<std::int64_t>(ids.size()));
  }
}

TEST_F(EvalEngine, DrawsDependOnThePromptAndOnHowOftenItCame) {
  auto items = generation_items(3);
  items.push_back(items[0]);
  const EvalOptions options{.sampling = {.temperature = 2.0, .seed = 4}};
  const auto first = answers(items, options);
  EXPECT_NE(first[0].text, first[3].text);
  std::rotate(items.begin(), items.begin() + 1, items.end());
  const auto rotated = answers(items, options);
  EXPECT_EQ(rotated[0].text, first[1].text);
  EXPECT_EQ(rotated[2].text, first[0].text);
}

TEST_F(EvalEngine, TextsAreScoredInWindows) {
  const std::vector<EvalItem> items{
      {.kind = ItemKind::text, .context = "the quick brown fox jumps over the lazy dog"},
      {.kind = ItemKind::text, .context = "and an owl"}};
  for (const std::optional<bool> bos : {std::optional<bool>(), std::optional<bool>(true)}) {
    WindowOptions windows{.window = 12, .stride = 5};
    const auto found = answers(items, {.bos = bos, .windows = windows});
    if (bos) windows.bos = small_.bos();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto ids = ItemEncoder(small_.tokenizer(), bos).text(items[i]);
      const TextScore expected = score_text(small_.model(), ids, windows);
      EXPECT_NEAR(found[i].nll, expected.nll, 1e-4);
      EXPECT_EQ(found[i].scored_tokens, expected.scored_tokens);
      EXPECT_EQ(found[i].nll_per_window.size(), expected.nll_per_window.size());
      EXPECT_EQ(found[i].context_tokens, static_cast<std::int64_t>(ids.size()));
    }
  }
  const std::vector<EvalItem> single{{.kind = ItemKind::text, .doc = 3, .context = "x"}};
  EXPECT_NE(error_of([&] { static_cast<void>(answers(single)); }).find("item 3: the text is too"),
            std::string::npos);
}

TEST_F(EvalEngine, ProgressEndsAtAllItems) {
  std::int64_t last = 0;
  std::int64_t total = 0;
  Log log;
  log.progress = [&](const std::string&, std::int64_t done, std::int64_t of) {
    EXPECT_GT(done, last);
    last = done;
    total = of;
  };
  static_cast<void>(
      answer_items(small_.model(), small_.tokenizer(), items_, {.batch_tokens = 30}, log));
  EXPECT_EQ(last, static_cast<std::int64_t>(items_.size()));
  EXPECT_EQ(total, last);
}

}  // namespace
}  // namespace onset::testing
