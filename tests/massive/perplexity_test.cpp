// Scoring texts in windows, and the interventions of the literature, against transformers
// (tests/data/smollm2/README.md) and against the logits themselves.
#include "onset/massive/perplexity.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onset/massive/interventions.h"
#include "onset/model/decoder.h"
#include "support/support.h"
#include "support/tensors.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

class WindowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Toy toy;
    toy.draw();
    toy.write(folder_.path());
    model_.emplace(Model::open(folder_.path()));
  }

  // -log p(ids[i] | ids[..i]) of each token but the first.
  [[nodiscard]] std::vector<double> losses(const std::vector<std::int64_t>& ids) const {
    const c10::InferenceMode inference;
    const std::vector<SequenceInput> batch{{.ids = ids}};
    const at::Tensor logits = model_->decoder().forward(batch, LogitRows::all).logits;
    const at::Tensor log_probs = at::log_softmax(logits.to(at::kDouble), 1);
    std::vector<double> result;
    for (std::size_t i = 1; i < ids.size(); ++i) {
      result.push_back(-log_probs[static_cast<std::int64_t>(i) - 1][ids[i]].item<double>());
    }
    return result;
  }

  TemporaryFolder folder_;
  std::optional<Model> model_;
  const std::vector<std::int64_t> text_{3, 7, 1, 30, 12, 9, 9, 4, 21, 16};
};

double sum(const std::vector<double>& values, std::size_t first) {
  double total = 0;
  for (std::size_t i = first; i < values.size(); ++i) total += values[i];
  return total;
}

TEST_F(WindowsTest, WindowsStartAfresh) {
  const TextScore score = score_text(*model_, text_, {.window = 4});
  EXPECT_EQ(score.windows, 3);
  EXPECT_EQ(score.scored_tokens, 3 + 3 + 1);
  const double expected =
      sum(losses({3, 7, 1, 30}), 0) + sum(losses({12, 9, 9, 4}), 0) + sum(losses({21, 16}), 0);
  EXPECT_NEAR(score.nll, expected, 1e-5 * expected);
  EXPECT_NEAR(score.nll_per_window[1], sum(losses({12, 9, 9, 4}), 0), 1e-5);
  EXPECT_NEAR(score.perplexity(), std::exp(expected / 7), 1e-4);
}

TEST_F(WindowsTest, OverlappingWindowsScoreEachTokenOnce) {
  const TextScore score = score_text(*model_, text_, {.window = 6, .stride = 2});
  EXPECT_EQ(score.scored_tokens, 9);
  const double expected = sum(losses({3, 7, 1, 30, 12, 9}), 0) +
                          sum(losses({1, 30, 12, 9, 9, 4}), 3) +
                          sum(losses({12, 9, 9, 4, 21, 16}), 3);
  EXPECT_NEAR(score.nll, expected, 1e-5 * expected);
}

TEST_F(WindowsTest, ABosBeginsEachWindowAndItsFirstTokenIsScored) {
  const TextScore score = score_text(*model_, text_, {.window = 6, .bos = 1});
  EXPECT_EQ(score.scored_tokens, 10);
  const double expected =
      sum(losses({1, 3, 7, 1, 30, 12}), 0) + sum(losses({1, 9, 9, 4, 21, 16}), 0);
  EXPECT_NEAR(score.nll, expected, 1e-5 * expected);
}

TEST_F(WindowsTest, ALoneTokenIsScoredWithABosOnly) {
  EXPECT_EQ(score_text(*model_, std::vector<std::int64_t>{5}, {.bos = 1}).scored_tokens, 1);
  EXPECT_NE(error_of([&] {
              static_cast<void>(score_text(*model_, std::vector<std::int64_t>{5}, {}));
            }).find("too short"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              static_cast<void>(score_text(*model_, text_, {.window = 4, .stride = 5}));
            }).find("make no sense"),
            std::string::npos);
}

class Smollm2Perplexity : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = demo_model();
    if (path.empty()) GTEST_SKIP() << "the demonstration model is not there: run scripts/setup";
    model_.emplace(Model::open(path));
    reference_ = OrderedJson::parse(read_file(onset::testing::data("smollm2/perplexity.json")));
    const ReferenceTensors text(onset::testing::data("smollm2/wikitext_ids.safetensors"));
    const at::Tensor ids = text.get("ids").to(at::kLong).narrow(0, 0, 2 * 512).contiguous();
    ids_.assign(ids.const_data_ptr<std::int64_t>(),
                ids.const_data_ptr<std::int64_t>() + ids.numel());
  }

  void expect_windows(const TextScore& found, const std::string& config, double tolerance) const {
    const OrderedJson& expected = reference_.at("configs").at(config);
    ASSERT_EQ(found.nll_per_window.size(), 2U);
    for (std::size_t w = 0; w < 2; ++w) {
      const auto nll = expected.at("nll_per_window")[w].get<double>();
      EXPECT_NEAR(found.nll_per_window[w], nll, tolerance * nll) << config << " window " << w;
    }
  }
  [[nodiscard]] Hooks edited(std::int64_t layer, const EntryEdit& edit) const {
    Hooks hooks(30);
    add_entry_edit(hooks, {.layer = layer, .dims = {507}}, edit);
    return hooks;
  }

  std::optional<Model> model_;
  OrderedJson reference_;
  std::vector<std::int64_t> ids_;
};

TEST_F(Smollm2Perplexity, EqualsTheReferenceWithoutAndWithInterventions) {
  expect_windows(score_text(*model_, ids_, {}), "none", 1e-4);
  const Hooks zero = edited(11, {.scale = 0.0});
  expect_windows(score_text(*model_, ids_, {}, &zero), "dim507_zero_after_block11", 1e-3);
  const auto mean = reference_.at("interventions").at("mean").get<double>();
  const Hooks to_mean = edited(11, {.values = {mean}});
  expect_windows(score_text(*model_, ids_, {}, &to_mean), "dim507_mean_after_block11", 1e-4);
}

TEST_F(Smollm2Perplexity, TheRuleChoosesTheSameEntriesAsTheirPosition) {
  const std::vector<std::int64_t> ids(ids_.begin(), ids_.begin() + 64);
  Hooks by_rule(30);
  add_entry_edit(by_rule, {.layer = 11, .dims = {507}, .position = std::nullopt}, {.scale = 0.0});
  const Hooks by_position = edited(11, {.scale = 0.0});
  EXPECT_EQ(score_text(*model_, ids, {}, &by_rule).nll,
            score_text(*model_, ids, {}, &by_position).nll);
}

}  // namespace
}  // namespace onset::testing
