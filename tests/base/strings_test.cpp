#include "onset/base/strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace onset {
namespace {

using Names = std::vector<std::string>;

TEST(Quote, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(quote("model.norm.weight"), "\"model.norm.weight\"");
  EXPECT_EQ(quote(""), "\"\"");
  EXPECT_EQ(quote("a\"b\\c\n\x1b[31m\x7f"), R"("a\"b\\c\n\x1b[31m\x7f")");
  EXPECT_EQ(quote("ü\xFF"), "\"ü\xEF\xBF\xBD\"");
  EXPECT_EQ(quote(std::string_view("\0", 1)), R"("\x00")");
}

TEST(Quote, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(quote("abcdef", 3), "\"abc...\"");
  EXPECT_EQ(quote("abc", 3), "\"abc\"");
  EXPECT_EQ(quote("aüü", 2), "\"a...\"");
  EXPECT_EQ(quote("aüü", 3), "\"aü...\"");
}

TEST(WholeCharacters, EndBetweenTwo) {
  EXPECT_EQ(whole_characters("aüü", 9), "aüü");
  EXPECT_EQ(whole_characters("aüü", 5), "aüü");
  EXPECT_EQ(whole_characters("aüü", 4), "aü");
  EXPECT_EQ(whole_characters("aüü", 3), "aü");
  EXPECT_EQ(whole_characters("aüü", 2), "a");
  EXPECT_EQ(whole_characters("\U0001F600", 3), "");
}

TEST(Counts, HaveGroupsOfThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(134515008), "134,515,008");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
}

TEST(Counts, GoWithTheirNoun) {
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(0, "tensor"), "0 tensors");
  EXPECT_EQ(counted(2000, "tensor"), "2,000 tensors");
  EXPECT_EQ(counted(1, "row is", "rows are"), "1 row is");
  EXPECT_EQ(counted(2000, "row is", "rows are"), "2,000 rows are");
}

TEST(EditDistance, KnownWords) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("saturday", "sunday"), 3U);
  EXPECT_EQ(edit_distance("gate", "gate_proj"), 5U);
}

// Edits applied to a word bound the distance; the distance is a metric.
TEST(EditDistance, IsAMetricBoundedByTheEditsMade) {
  std::mt19937 random(1);
  const auto word = [&] {
    std::string text(random() % 12, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int i = 0; i < 500; ++i) {
    const std::string a = word();
    const std::string b = word();
    const std::string c = word();
    EXPECT_EQ(edit_distance(a, a), 0U);
    EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
    EXPECT_LE(edit_distance(a, c), edit_distance(a, b) + edit_distance(b, c));
    EXPECT_LE(edit_distance(a, b), std::max(a.size(), b.size()));
    std::string edited = a;
    edited.insert(random() % (edited.size() + 1), 1, 'x');
    EXPECT_EQ(edit_distance(a, edited), 1U);
  }
}

TEST(Nearest, OrdersByDistanceAndLeavesOutTheFarFetched) {
  const Names options = {"--prompt", "--json", "--threads", "--top", "--min-abs"};
  EXPECT_EQ(nearest("--promt", options), (Names{"--prompt"}));
  EXPECT_EQ(nearest("--jsn", options), (Names{"--json"}));
  EXPECT_EQ(nearest("--quantise", options), Names{});
  EXPECT_EQ(nearest("abcx", {"abcyz", "abc", "abcd"}), (Names{"abc", "abcd", "abcyz"}));
  EXPECT_EQ(nearest("abcx", {"abcyz", "abc", "abcd"}, 1), (Names{"abc"}));
  EXPECT_EQ(nearest(std::string(10'000, 'a'), {std::string(10'000, 'a')}), Names{});
}

TEST(DidYouMean, ReadsAsAQuestion) {
  EXPECT_EQ(did_you_mean({}), "");
  EXPECT_EQ(did_you_mean({"a"}), "did you mean \"a\"?");
  EXPECT_EQ(did_you_mean({"a", "b"}), "did you mean \"a\", \"b\"?");
}

}  // namespace
}  // namespace onset
