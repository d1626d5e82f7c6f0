#include "onset/eval/csv.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace onset {
namespace {

using Texts = std::vector<std::string>;
using testing::error_of;

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineBreaks) {
  const auto records =
      parse_csv("\xEF\xBB\xBFq,a\r\n\"one, \"\"two\"\"\nthree\",x\n\n,\"\"\nlast,end", "f.csv");
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].fields, (Texts{"q", "a"}));
  EXPECT_EQ(records[1].fields, (Texts{"one, \"two\"\nthree", "x"}));
  EXPECT_EQ(records[2].fields, (Texts{"", ""}));
  EXPECT_EQ(records[3].fields, (Texts{"last", "end"}));
  EXPECT_EQ(records[1].line, 2);
  EXPECT_EQ(records[2].line, 5);
  EXPECT_EQ(records[3].line, 6);
}

TEST(Csv, ALineBreakInsideQuotesIsKeptAsItIs) {
  const auto records = parse_csv("a\n\"x\r\ny\"\n", "f.csv");
  EXPECT_EQ(records.at(1).fields, (Texts{"x\r\ny"}));
}

TEST(Csv, OtherSeparatorsAndEmptyFieldsAtTheEnd) {
  const auto records = parse_csv("a\tb\n1,2\t\n", "f.tsv", '\t');
  EXPECT_EQ(records.at(1).fields, (Texts{"1,2", ""}));
  EXPECT_TRUE(parse_csv("", "f.csv").empty());
}

TEST(Csv, ErrorsNameFileAndLine) {
  EXPECT_EQ(error_of([] { return parse_csv("a,b\n1,2\n1,2,3\n", "f.csv"); }),
            "f.csv:3: 3 fields, expected 2 as in the first line");
  EXPECT_EQ(error_of([] { return parse_csv("a\n\"x\ny\n", "f.csv"); }),
            "f.csv:2: a quoted field begins here and does not end");
  EXPECT_EQ(error_of([] { return parse_csv("a\n\"x\" y\n", "f.csv"); }),
            "f.csv:2: text behind the closing quote of a field");
  EXPECT_EQ(error_of([] { return parse_csv("a\nx\"y\"\n", "f.csv"); }),
            "f.csv:2: a quote inside a field that does not begin with one");
}

}  // namespace
}  // namespace onset
