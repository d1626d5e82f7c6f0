#include "onset/train/rewards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;
using testing::TemporaryFolder;

const OrderedJson gsm8k{{"question", "q"}, {"answer", "9 * 8 = <<9*8=72>>72 clips.\n#### 1,072"}};

std::vector<double> scores(const std::string& reward, const std::vector<std::string>& texts,
                           const OrderedJson& record, const RewardOptions& options = {}) {
  std::vector<RewardedCompletion> completions;
  for (const std::string& text : texts) {
    completions.push_back({.prompt = "Why?",
                           .text = text,
                           .record = &record,
                           .tokens = static_cast<std::int64_t>(text.size())});
  }
  return make_reward(reward, options).score(completions);
}

std::string fault(const std::string& reward, const std::vector<std::string>& texts = {},
                  const RewardOptions& options = {}) {
  return error_of([&] { (void)scores(reward, texts, gsm8k, options); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Rewards, GradeSchoolNumbersStrictAndFlexible) {
  const std::vector<std::string> texts = {"so #### 1072", "1,072 #### 5", "it is 1072.", "#### ",
                                          ""};
  EXPECT_EQ(scores("gsm8k_strict", texts, gsm8k), (std::vector<double>{1, 0, 0, 0, 0}));
  EXPECT_EQ(scores("gsm8k_flexible", texts, gsm8k), (std::vector<double>{1, 0, 1, 0, 0}));
}

TEST(Rewards, TheRightAnswerMayBeANumberInAnotherColumn) {
  const OrderedJson record{{"solution", 18}};
  EXPECT_EQ(scores("gsm8k_flexible", {"18", "1"}, record, {.answer = "solution"}),
            (std::vector<double>{1, 0}));
}

TEST(Rewards, BoxesAreComparedAsMathematics) {
  const OrderedJson bare{{"answer", "\\frac{1}{2}"}};
  const std::vector<std::string> texts = {
      "\\boxed{0.5}", "\\boxed{\\frac12}", "\\boxed{\\frac{1}{3}}",
      "0.5",          "\\boxed{}",         "\\boxed{3} then \\boxed{1/2}"};
  const std::vector<double> right = {1, 1, 0, 0, 0, 1};
  EXPECT_EQ(scores("boxed_math", texts, bare), right);
  const OrderedJson solution{{"answer", "We find \\boxed{9}, no, $\\boxed{\\frac{1}{2}}$."}};
  EXPECT_EQ(scores("boxed_math", texts, solution), right);
  EXPECT_EQ(scores("boxed_math", {"\\boxed{1072}", "\\boxed{72}"}, gsm8k),
            (std::vector<double>{1, 0}));
}

TEST(Rewards, AFormatIsFoundAnywhereUnlessAnchored) {
  EXPECT_EQ(scores("format:<b>[^<]*</b>", {"x <b>1</b> y", "<b>1", "\xff<b></b>"}, gsm8k),
            (std::vector<double>{1, 0, 1}));
  EXPECT_EQ(scores("format:^(?s:<think>.*</think>)", {"<think>a\n:b</think> c", " <think></think>"},
                   gsm8k),
            (std::vector<double>{1, 0}));
}

TEST(Rewards, AFormatThatEverythingHasIsRefused) {
  EXPECT_TRUE(contains(fault("format:"), "the regex is empty")) << fault("format:");
}

TEST(Rewards, ACommandsNumbersAreWithinFloat32) {
  for (const std::string number : {"1e308", "-1e308", "3.5e38"}) {
    const std::string message = fault("command:echo " + number, {"x"});
    EXPECT_TRUE(contains(message, "line 1 of its output is \"" + number + "\"")) << message;
    EXPECT_TRUE(contains(message, "3.4e38")) << message;
  }
  EXPECT_EQ(scores("command:echo 3.4e38", {"x"}, gsm8k), std::vector<double>{3.4e38});
}

// TRL's docstring has 90 tokens of 100 with 20 soft ones as -0.5.
TEST(Rewards, LengthIsDapoSoftPenalty) {
  const std::vector<std::string> texts = {std::string(80, 'x'), std::string(90, 'x'),
                                          std::string(100, 'x'), std::string(101, 'x'), ""};
  EXPECT_EQ(scores("length:100,20", texts, gsm8k), (std::vector<double>{0, -0.5, -1, -1, 0}));
  EXPECT_EQ(scores("length:100", texts, gsm8k), (std::vector<double>{0, -0.5, -1, -1, 0}));
  EXPECT_EQ(scores("length:100,0", texts, gsm8k), (std::vector<double>{0, 0, 0, -1, 0}));
}

TEST(Rewards, ACommandSeesPromptCompletionAndRecordAndMayAbstain) {
  const TemporaryFolder folder;
  const auto script = folder.write("reward.sh", R"(
while IFS= read -r line; do
  case "$line" in
    '{"prompt":"Why?","completion":"first\nline","record":{"question":"q",'*'"tokens":10}') echo 0.5 ;;
    *'"completion":"second"'*'"ended":true'*) echo -2e1 ;;
    *) echo null ;;
  esac
done)");
  const auto values =
      scores("command:sh '" + script.string() + "'", {"first\nline", "second", "x"}, gsm8k);
  ASSERT_EQ(values.size(), 3);
  EXPECT_EQ(values[0], 0.5);
  EXPECT_EQ(values[1], -20);
  EXPECT_TRUE(std::isnan(values[2]));
}

TEST(Rewards, ACommandThatFailsIsNamed) {
  EXPECT_TRUE(contains(fault("command:exit 3", {"a"}), "\"exit 3\" ended with exit code 3"));
  EXPECT_TRUE(
      contains(fault("command:cat >/dev/null", {"a"}), "printed 0 lines for 1 completions"));
  EXPECT_TRUE(contains(fault("command:cat >/dev/null; echo 1", {"a", "b"}),
                       "printed 1 lines for 2 completions"));
  EXPECT_TRUE(contains(fault("command:cat >/dev/null; echo 1; echo 2", {"a"}),
                       "printed 2 lines for 1 completions"));
  EXPECT_TRUE(contains(fault("command:cat >/dev/null; echo 1; echo NaN", {"a", "b"}),
                       "line 2 of its output is \"NaN\""));
  EXPECT_TRUE(
      contains(fault("command:cat >/dev/null; echo '\"1\"'", {"a"}), "line 1 of its output"));
  EXPECT_TRUE(contains(fault("command:cat >/dev/null; echo 1e999", {"a"}), "line 1 of its output"));
  EXPECT_TRUE(contains(fault("command:sleep 30", {"a"}, {.command_seconds = 0.1}),
                       "\"sleep 30\" took longer than 0.1 s"));
}

TEST(Rewards, DescriptionsThatSayNothingAreRefused) {
  EXPECT_TRUE(contains(fault("gsm8k_strickt"), "did you mean \"gsm8k_strict\""));
  EXPECT_TRUE(contains(fault("format"), "format needs more"));
  EXPECT_TRUE(contains(fault("format:("), "reward format"));
  EXPECT_TRUE(contains(fault("boxed_math:x"), "takes nothing"));
  EXPECT_TRUE(contains(fault("command: "), "no program"));
  for (const char* wrong : {"length:", "length:x", "length:0", "length:-5", "length:5,6",
                            "length:5,1,1", "length:5,-1", "length:5x"}) {
    EXPECT_TRUE(contains(fault(wrong), "MAX")) << wrong;
  }
}

TEST(Rewards, ARecordWithoutTheAnswerIsAnErrorThatListsItsColumns) {
  const std::string error = fault("gsm8k_strict", {"a"}, {.answer = "solution"});
  EXPECT_TRUE(contains(error, "no column \"solution\"")) << error;
  EXPECT_TRUE(contains(error, "\"question\", \"answer\"")) << error;
}

TEST(Rewards, SumsLeaveOutWhatAbstained) {
  const TemporaryFolder folder;
  const auto numbers = folder.write("numbers", "null\n4\nnull\n");
  const Rewards rewards({"command:cat '" + numbers.string() + "'", "format:a", "format:b"},
                        {0.5, 2, -1}, {});
  const Rewards alone({"command:cat '" + numbers.string() + "'"}, {}, {});
  std::vector<RewardedCompletion> completions;
  for (const char* text : {"a", "ab", ""}) {
    completions.push_back({.prompt = "", .text = text, .record = nullptr});
  }
  const RewardSums sums = rewards.score(completions);
  EXPECT_EQ(sums.values, (std::vector<double>{2, 2 + 2 - 1, 0}));
  // Means and sample deviations by hand: one value; 1, 1, 0; 0, 1, 0.
  const Metrics expected = {{"rewards/command/mean", 4},
                            {"rewards/format/mean", 2.0 / 3},
                            {"rewards/format/std", std::sqrt(1.0 / 3)},
                            {"rewards/format_2/mean", 1.0 / 3},
                            {"rewards/format_2/std", std::sqrt(1.0 / 3)}};
  ASSERT_EQ(sums.metrics.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(sums.metrics[i].first, expected[i].first);
    EXPECT_NEAR(sums.metrics[i].second, expected[i].second, 1e-15);
  }
  const RewardSums single = alone.score(completions);
  EXPECT_TRUE(std::isnan(single.values[0]));
  EXPECT_EQ(single.values[1], 4);
  EXPECT_NE(error_of([] { Rewards({"boxed_math"}, {1, 2}, {}); }), "");
}

}  // namespace
}  // namespace onset
