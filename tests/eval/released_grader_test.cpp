#include "onset/eval/released_grader.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/same_answer.h"

namespace onset {
namespace {

constexpr std::string_view prompt =
    "Please reason step by step and put your final answer within \\boxed{{}}.\nQuestion: ";

// What the released code answers on the same texts.
TEST(ReleasedGrader, CountsAsTheReleasedCodeDoes) {
  struct Row {
    std::string_view gold;
    std::string_view completion;
    bool correct;
  };
  const std::vector<Row> rows = {
      {"18", R"(so \boxed{18})", true},
      {"18", R"(so \boxed{1})", true},  // "1" is a part of "18"
      {"18", R"(so \boxed{8})", true},
      {"18", R"(so \boxed{})", true},  // so is the empty text
      {"18", R"(so \boxed{81})", false},
      {"18", R"(so \boxed{18.0})", false},
      {"18", "no box", false},  // the prompt's box holds {}
      {"18", R"(so \boxed{18)", false},
      {"18", R"(so \fbox{18})", false},
      {"18", R"(so \boxed 18)", false},
      {"a #### 1,234", R"(\boxed{1,234})", true},
      {"a #### 1,234", R"(\boxed{1234})", false},
      {R"(\frac{1}{2})", R"(\boxed{\dfrac12})", true},
      {R"(\frac{1}{2})", R"(\boxed{0.5})", true},
      {R"(\frac{1}{2})", R"(\boxed{1/2})", true},
      {R"(\frac{1}{2})", R"(\boxed{2/4})", false},
      {R"(\frac{1}{72})", R"(\boxed{\frac1{72}})", true},
      {R"(2\sqrt{3})", R"(\boxed{2 \sqrt3})", true},
      {R"(2\sqrt{3})", R"(\boxed{\sqrt{3}})", true},
      {R"(2\sqrt{3})", R"(\boxed{\sqrt{12}})", false},
      {R"(5 \text{ cm})", R"(\boxed{5})", true},
      {R"(90^\circ)", R"(\boxed{90})", true},
      {"5", R"(\boxed{x=5})", true},
      {"5", R"(\boxed{abc=5})", false},
      {R"(\left(1,2\right))", R"(\boxed{(1,2)})", true},
      {"0.25", R"(\boxed{.25})", true},
      {"3", R"(\boxed{\sqrt})", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(released_math_correct(row.gold, prompt, row.completion), row.correct)
        << row.gold << "   " << row.completion;
  }
}

TEST(ReleasedGrader, ThePromptsOwnBoxIsFound) {
  EXPECT_EQ(released_prediction(prompt, "no box"), "{}");
  EXPECT_EQ(released_prediction("within \\boxed{}. ", "no box"), "");
  EXPECT_TRUE(released_math_correct("18", "within \\boxed{}. ", "no box"));
  EXPECT_EQ(same_answer("18", ""), Verdict::no_answer);
}

TEST(ReleasedGrader, FormsAreThoseOfMath) {
  EXPECT_EQ(released_form("\\tfrac{1}{2}"), "\\frac{1}{2}");
  EXPECT_EQ(released_form("x = 5"), "5");
  EXPECT_EQ(released_form("\\frac1"), "\\frac1");
  EXPECT_EQ(released_form("-1/2"), "\\frac{-1}{2}");
  EXPECT_EQ(released_form("01/2"), "01/2");
  EXPECT_EQ(released_form("\\$5\\%"), "5");
  EXPECT_EQ(released_form("1 .5"), "10.5");
  EXPECT_EQ(released_form("\\frac"), std::nullopt);
  EXPECT_EQ(released_form(""), "");
}

}  // namespace
}  // namespace onset
