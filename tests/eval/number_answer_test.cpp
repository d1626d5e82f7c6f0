#include "onset/eval/number_answer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/answer_text.h"
#include "onset/eval/exact_match.h"
#include "onset/eval/text_pattern.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

// Both modes of GSM8K on one answer.
struct Row {
  std::string_view gold;
  std::string_view answer;
  bool string_mode;
  bool numeric_mode;
};

TEST(NumberAnswer, StringAndNumericModeDifferWhereANumberHasSeveralTexts) {
  const std::vector<Row> rows = {
      {"1234", "1,234", true, true},
      {"18", "18.", true, true},
      {"-3", "-3.0", false, true},
      {"18", "$18", true, true},
      {"18", "\\$18", false, true},
      {"18", "18.00", false, true},
      {"18", "+18", false, true},
      {"18", "018", false, true},
      {"0.5", ".5", false, true},
      {"5", "-5", false, false},
      {"0", "-0", false, true},
      {"123", "1,23", true, false},
      {"1234567", "1,234,567", true, true},
      {"1234567", "1234,567", true, false},
      {"70000", "70,000", true, true},
      {"18", "81", false, false},
      {"18", "1", false, false},
      {"18", "8", false, false},
      {"18", "", false, false},
      {"18", ".", false, false},
      {"1.5", "1.5.", true, true},
      {"1.5", "1.5.0", false, false},
      {"-5", "$-5", true, true},
      {"-5", "-$5", true, true},
      {"12345678901234567890123", "12345678901234567890123", true, true},
      {"12345678901234567890123", "12345678901234567890124", false, false},
  };
  for (const Row& row : rows) {
    const std::string target = "first.\n#### " + std::string(row.gold);
    EXPECT_EQ(exact_match(row.answer, target, gsm8k_exact_match()), row.string_mode)
        << row.gold << " | " << row.answer;
    EXPECT_EQ(same_number(target, row.answer) == Verdict::equal, row.numeric_mode)
        << row.gold << " | " << row.answer;
  }
}

TEST(NumberAnswer, AnEmptyAnswerIsNone) {
  EXPECT_EQ(same_number("18", ""), Verdict::no_answer);
  EXPECT_EQ(same_number("18", "  \n"), Verdict::no_answer);
  EXPECT_EQ(same_number("18", "eighteen"), Verdict::different);
}

TEST(NumberAnswer, AGoldThatIsNoNumberIsAnError) {
  EXPECT_NE(error_of([] { (void)same_number("#### many", "5"); }).find("many"), std::string::npos);
}

// CASES.md, row 20.
TEST(NumberAnswer, RunOnTextIsCutBeforeTheNumberIsRead) {
  const std::string completion = "so 7.\n#### 1,234\nQuestion: ... #### 9";
  EXPECT_EQ(last_number(completion), "9");
  const std::vector<std::string> stop = {"Question:"};
  const std::string_view cut = cut_at_stop(completion, stop);
  EXPECT_EQ(strict_number(cut), "1,234");
  EXPECT_EQ(last_number(cut), "1,234");
  EXPECT_EQ(same_number("#### 1234", "1,234"), Verdict::equal);
  EXPECT_TRUE(exact_match("1,234", "#### 1234", gsm8k_exact_match()));
}

// What the two regexes of lm-eval's task find is what our two functions find.
TEST(NumberAnswer, StrictAndLastNumberAreThoseOfTheRegexes) {
  const TextPattern strict(R"(#### (\-?[0-9\.\,]+))", "test");
  const TextPattern flexible("(-?[$0-9.,]{2,})|(-?[0-9]+)", "test");
  const std::vector<std::string> texts = {"",
                                          "none",
                                          "#### 5",
                                          "####5",
                                          "#### $5",
                                          "#### -5.",
                                          "#### -",
                                          "##### 12",
                                          "a #### 1 #### 2",
                                          "3-4",
                                          "5--3",
                                          "it is 5.",
                                          "is 1,234.50!",
                                          "$12 or $1",
                                          "...",
                                          ". , $ 7",
                                          "x = -$5",
                                          "-",
                                          "12 - 5 = 7 eggs",
                                          "7. And 8,"};
  for (const std::string& text : texts) {
    const auto in_strict = strict.find_all(text);
    EXPECT_EQ(strict_number(text).value_or("none"),
              in_strict.empty() ? "none" : in_strict.front().groups[0])
        << text;
    const auto in_flexible = flexible.find_all(text);
    EXPECT_EQ(last_number(text).value_or("none"),
              in_flexible.empty() ? "none" : in_flexible.back().text)
        << text;
  }
}

}  // namespace
}  // namespace onset
