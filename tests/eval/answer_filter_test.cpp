#include "onset/eval/answer_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/exact_match.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

AnswerFilter regex_filter(std::string_view pattern, int group_select = 0) {
  return {"test", {{FilterFunction::regex, TextPattern(pattern, "test"), group_select}}};
}

std::string filtered(const AnswerFilter& filter, std::string_view text) {
  return apply_filter(filter, {text}).text;
}

// Expected values are Python's re.findall and re.sub on the same texts.
TEST(TextPattern, FindsAndRemovesAsPythonDoes) {
  const TextPattern star("a*", "test");
  std::vector<std::string> found;
  for (const auto& match : star.find_all("baac")) found.emplace_back(match.text);
  EXPECT_EQ(found, (std::vector<std::string>{"", "aa", "", ""}));
  EXPECT_EQ(star.remove_from("baac"), "bc");
  EXPECT_EQ(TextPattern("\\.$", "test").remove_from("18.\n"), "18\n");
  EXPECT_EQ(TextPattern("(?s).*#### ", "test").remove_from("a\n#### b\n#### 18"), "18");
  EXPECT_EQ(TextPattern("^b", "test").remove_from("a\nb"), "a\nb");
  EXPECT_EQ(TextPattern("é+", "test").remove_from("créée"), "cre");
}

TEST(TextPattern, AFaultyPatternIsAnErrorThatNamesIt) {
  const std::string message = error_of([] { (void)TextPattern("(a", "task t"); });
  EXPECT_NE(message.find("task t"), std::string::npos) << message;
  EXPECT_NE(message.find("\"(a\""), std::string::npos) << message;
  EXPECT_NE(error_of([] { (void)TextPattern("a\\Z", "task t"); }).find("\\z"), std::string::npos);
}

// "aa..a" and the last letter.
std::string letters_before(std::size_t count, char last) {
  std::string text(count, 'a');
  text.push_back(last);
  return text;
}

// Python: len(re.search('((a)|b)*c', 'a' * 100000 + 'c')[0]) is 100001.
TEST(TextPattern, ALongRepeatedGroupIsFound) {
  const TextPattern pattern("((a)|b)*c", "task.toml");
  const std::string text = letters_before(100000, 'c');
  const auto matches = pattern.find_all(text);
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(matches[0].text.size(), 100001U);
}

TEST(TextPattern, ASearchThatNeverEndsIsGivenUp) {
  const TextPattern evil("(a+)+$", "test");
  EXPECT_TRUE(evil.find_all(letters_before(40, 'b')).empty());
}

TEST(AnswerFilter, RegexTakesTheGroupAsLmEvalDoes) {
  EXPECT_EQ(filtered(regex_filter("#### (\\-?[0-9\\.\\,]+)"), "x #### 1,234 #### 9"), "1,234");
  const std::string flexible = "(-?[$0-9.,]{2,})|(-?[0-9]+)";
  EXPECT_EQ(filtered(regex_filter(flexible, -1), "7 eggs, so 18."), "18.");
  EXPECT_EQ(filtered(regex_filter(flexible, -1), "12 or 7"), "7");
  EXPECT_EQ(filtered(regex_filter(flexible, 1), "12 or 7"), "7");
  EXPECT_EQ(filtered(regex_filter("\\d+ "), "about 12 eggs"), "12");
  EXPECT_EQ(filtered(regex_filter("(x*)(y*)"), "z"), "[invalid]");
  EXPECT_EQ(filtered(regex_filter("a(x*)"), "a"), "");
  const FilteredAnswer none = apply_filter(regex_filter("#### (\\d+)"), {"18"});
  EXPECT_FALSE(none.found);
  EXPECT_EQ(none.text, "[invalid]");
  EXPECT_FALSE(apply_filter(regex_filter("\\d+", 2), {"1 2"}).found);
}

// CASES.md, row 20, through the parts that a task file names.
TEST(AnswerFilter, StrictMatchAndExactMatchAreLmEvals) {
  const AnswerFilter strict = regex_filter(R"(#### (\-?[0-9\.\,]+))");
  const auto right = [&](std::string_view completion, std::string_view target) {
    return exact_match(filtered(strict, completion), target, gsm8k_exact_match());
  };
  EXPECT_TRUE(right("so 7.\n#### 1,234\n", "48 / 2.\n#### 1234"));
  EXPECT_TRUE(right("#### 18.", "#### 18"));
  EXPECT_FALSE(right("#### -3.0", "#### -3"));
  EXPECT_FALSE(right("so 18", "#### 18"));
}

TEST(AnswerFilter, StepsFollowEachOther) {
  const AnswerFilter filter = {
      "boxed",
      {{FilterFunction::after_thinking}, {FilterFunction::without_code}, {FilterFunction::boxed}}};
  EXPECT_EQ(filtered(filter, "<think>\\boxed{1}</think>\n```\n\\boxed{3}\n```\nso \\boxed{2}"),
            "2");
  EXPECT_FALSE(apply_filter(filter, {"<think>\\boxed{1}"}).found);
  EXPECT_FALSE(apply_filter(filter, {"\\boxed{1}", /*thinking_opened=*/true}).found);
  EXPECT_FALSE(apply_filter(filter, {"$5$"}).found);
}

TEST(AnswerFilter, AFormulaStandsInWhereNoBoxWasBegun) {
  const AnswerFilter filter = {"f", {{FilterFunction::boxed_or_formula}}};
  EXPECT_EQ(filtered(filter, "so \\[ x = 5 \\]"), "x = 5");
  EXPECT_EQ(filtered(filter, "$1$ \\boxed{2} $3$"), "2");
  EXPECT_FALSE(apply_filter(filter, {"$1$ \\boxed{}"}).found);
}

TEST(AnswerFilter, FunctionsHaveNames) {
  EXPECT_EQ(filter_function("without_code", "t"), FilterFunction::without_code);
  EXPECT_EQ(name_of(FilterFunction::boxed_or_formula), "boxed_or_formula");
  const std::string message = error_of([] { (void)filter_function("boxd", "task t"); });
  EXPECT_NE(message.find("did you mean \"boxed\""), std::string::npos) << message;
}

TEST(ExactMatch, IgnoresWhatItIsTold) {
  EXPECT_FALSE(exact_match("Yes!", "yes", {}));
  EXPECT_FALSE(exact_match("Yes!", "yes", {{}, true, false}));
  EXPECT_TRUE(exact_match("Yes!", "yes", {{}, true, true}));
  EXPECT_TRUE(exact_match("ÄÉ", "äé", {{}, true, false}));
  EXPECT_FALSE(exact_match("", "yes", {}));
  EXPECT_FALSE(exact_match("ye", "yes", {}));
}

}  // namespace
}  // namespace onset
