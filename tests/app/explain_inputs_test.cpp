// onset explain on odd models and options: states that are not finite, a dim named twice, the BOS
// of the text, windows beyond the context.

#include <algorithm>
#include <limits>

#include "app/program.h"
#include "onset/base/error.h"
#include "support/toy.h"

namespace onset::testing {
namespace {

const std::string text_ids = "5,9,3,11,7,21,30,12,6,18,14,2,9,31,25,11,8,14,27,16";

class ExplainedToy : public ::testing::Test {
 protected:
  ExplainedToy() {
    toy_.config["vocab_size"] = 32;
    toy_.draw(3);
  }
  [[nodiscard]] Outcome explain(std::vector<std::string> further) {
    toy_.write(folder_.path());
    std::vector<std::string> arguments{
        "explain", folder_.path().string(), "--ids", "1,5,9", "--layer", "1"};
    arguments.insert(arguments.end(), further.begin(), further.end());
    return run_onset(arguments);
  }

  Toy toy_;
  TemporaryFolder folder_;
};

TEST_F(ExplainedToy, AnEmbeddingThatIsNotFiniteIsNamedByItsToken) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t id : {0U, 20U, 31U}) {
      toy_.draw(3);
      toy_.values.at("model.embed_tokens.weight")[id * 8 + 3] = bad;
      const auto outcome = explain({"--only", "vocabulary"});
      expect_refusal(outcome, 1, str_cat("token id ", id, " alone"));
      EXPECT_NE(outcome.error.find("inspect MODEL --verify"), std::string::npos);
    }
  }
}

TEST_F(ExplainedToy, ADimNamedTwiceIsOneDim) {
  const std::vector<std::string> once{"--dim",      "2",      "--only", "dose",
                                      "--text-ids", text_ids, "--json"};
  auto twice = once;
  twice.insert(twice.begin(), {"--dim", "2"});
  const auto one = explain(once).json();
  const auto two = explain(twice).json();
  EXPECT_EQ(one["target"], two["target"]);
  EXPECT_EQ(one["dose"], two["dose"]);
}

TEST_F(ExplainedToy, WindowsBeyondTheContextAreSaid) {
  toy_.config["max_position_embeddings"] = 10;
  const auto beyond = explain({"--only", "dose", "--text-ids", text_ids});
  ASSERT_EQ(beyond.code, 0) << beyond.error;
  EXPECT_NE(beyond.error.find("windows of 20 tokens"), std::string::npos) << beyond.error;
  const auto within = explain({"--only", "dose", "--text-ids", text_ids, "--window", "10"});
  EXPECT_EQ(within.error.find("windows of"), std::string::npos) << within.error;
}

TEST_F(ExplainedToy, WhatCannotBeMeasuredIsNoNumber) {
  const auto last = explain({"--text-ids", text_ids});
  ASSERT_EQ(last.code, 0) << last.error;
  EXPECT_EQ(last.out.find("nan"), std::string::npos) << last.out;
  for (auto& [name, values] : toy_.values) std::fill(values.begin(), values.end(), 0.0F);
  const auto zero = explain({"--text-ids", text_ids});
  ASSERT_EQ(zero.code, 0) << zero.error;
  EXPECT_EQ(zero.out.find("nan"), std::string::npos) << zero.out;
  EXPECT_NE(zero.out.find("M is 0 there"), std::string::npos) << zero.out;
}

TEST_F(ExplainedToy, ATokenBeyondTheTextIsNotDosed) {
  const auto outcome = explain(
      {"--ids", "1,5,9,7,3,8,2,4", "--token", "7", "--only", "dose", "--text-ids", "3,4,5,6,7"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("token 7 is beyond the text's samples of 5 tokens"),
            std::string::npos)
      << outcome.error;
}

TEST_F(ExplainedToy, AnEmptyListIsRefused) {
  expect_refusal(explain({"--only", ""}), 2, "parts: norm, ffn, factorial, fall, vocabulary, dose");
  expect_refusal(explain({"--only", "norm,"}), 2, "empty name");
  expect_refusal(explain({"--text-ids", ""}), 2, "--text-ids");
}

TEST_F(ExplainedToy, ATextOfTwoTokensIsSaidToShowNothing) {
  const auto outcome = explain({"--only", "dose", "--text-ids", "3,4"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("the text of the experiments has 2 tokens"), std::string::npos)
      << outcome.error;
  EXPECT_NE(outcome.out.find("Note: the text of the experiments has 2 tokens"), std::string::npos)
      << outcome.out;
  std::string ids = "1";
  for (int i = 1; i < 64; ++i) ids += str_cat(",", i % 30);
  const auto enough = explain({"--only", "dose", "--text-ids", ids});
  ASSERT_EQ(enough.code, 0) << enough.error;
  EXPECT_EQ(enough.error, "") << "no note of a long wait for a model of a few parameters either";
}

}  // namespace
}  // namespace onset::testing
