#include "onset/eval/answer_text.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onset {
namespace {

constexpr std::string_view none = "(none)";

struct Row {
  std::string_view completion;
  std::string_view answer;  // "(none)": no answer
};

std::string shown(std::optional<std::string_view> text) { return std::string(text.value_or(none)); }

TEST(AnswerText, TheLastBoxCountsWithBalancedBraces) {
  const std::vector<Row> rows = {
      {"so \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"},
      {R"(\[ \boxed{5} \])", "5"},
      {"first \\boxed{1}, no: \\boxed{2}", "2"},
      {"\\fbox{7}", "7"},
      {"$\\boxed 5$ and so on", "5"},
      {"\\boxed 42 is it", "42"},
      {"\\boxed  {  x^{2}  }", "x^{2}"},
      {R"(\boxed{\{1, 2\}})", "\\{1, 2\\}"},
      {"\\boxed{\\boxed{3}}", "\\boxed{3}"},
      {"\\boxed{\\fbox{3}, 4}", "\\fbox{3}, 4"},
      {R"(\boxed{\left\{x \right.})", R"(\left\{x \right.)"},
      {"let {x and \\boxed{5}", "5"},
      {"} \\boxed{5} }", "5"},
      {"\\boxed{oh wait, \\boxed{6}", "6"},
      {"\\\\boxed{8}", "8"},
      {R"(\\\boxed{9})", "9"},
      {"\\boxed{}", none},
      {"\\boxed{ { } }", none},
      {"\\boxed{\\boxed{}}", none},
      {"\\boxed{1} then \\boxed{}", none},
      {"\\boxed{1} then \\boxed{2", none},
      {"\\boxed{\\frac{1}{2}", none},
      {"\\boxed", none},
      {"\\boxed{1} and \\boxed", none},
      {"\\boxedness{5}", none},
      {"no box, 5", none},
      {"", none},
  };
  for (const Row& row : rows)
    EXPECT_EQ(shown(last_box(row.completion)), row.answer) << row.completion;
}

TEST(AnswerText, ThinkingIsNoAnswer) {
  EXPECT_EQ(shown(after_thinking("<think>\\boxed{1}</think>It is 2.")), "It is 2.");
  EXPECT_EQ(shown(after_thinking("hm</think>a</think>b")), "b");
  EXPECT_EQ(shown(after_thinking("plain")), "plain");
  EXPECT_EQ(shown(after_thinking("")), "");
  EXPECT_EQ(shown(after_thinking("<think>so \\boxed{1}")), none);
  EXPECT_EQ(shown(after_thinking("<think>a</think>b<think>c")), none);
  EXPECT_EQ(shown(after_thinking("so \\boxed{1}", /*opened=*/true)), none);
  EXPECT_EQ(shown(after_thinking("so</think>2", /*opened=*/true)), "2");
}

TEST(AnswerText, TextEndsAtTheFirstStop) {
  const std::vector<std::string> stop = {"Question:", "</s>", ""};
  EXPECT_EQ(cut_at_stop("so 7.\n#### 1,234\nQuestion: ... #### 9", stop), "so 7.\n#### 1,234\n");
  EXPECT_EQ(cut_at_stop("a</s>Question:", stop), "a");
  EXPECT_EQ(cut_at_stop("a", stop), "a");
}

TEST(AnswerText, CodeBlocksAreLeftOut) {
  EXPECT_EQ(without_code_blocks("a\n```python\nI cannot\n```\nb"), "a\nb");
  EXPECT_EQ(without_code_blocks("a\n~~~\n```\n~~~\nb"), "a\nb");
  EXPECT_EQ(without_code_blocks("a\n````\n```\n````\nb\n"), "a\nb\n");
  EXPECT_EQ(without_code_blocks("a\n```\nnever closed"), "a\n");
  EXPECT_EQ(without_code_blocks("```x``` is code within a line"), "```x``` is code within a line");
}

TEST(AnswerText, TheLastFormulaIsFoundInEveryWriting) {
  EXPECT_EQ(shown(last_formula("so \\[ x = 5 \\] holds")), "x = 5");
  EXPECT_EQ(shown(last_formula("$1$ and \\(2\\)")), "2");
  EXPECT_EQ(shown(last_formula("$$ 3 $$")), "3");
  EXPECT_EQ(shown(last_formula("it costs \\$5 and $x$")), "x");
  EXPECT_EQ(shown(last_formula("\\[ open")), none);
  EXPECT_EQ(shown(last_formula("nothing")), none);
}

}  // namespace
}  // namespace onset
