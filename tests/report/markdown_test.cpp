// A page in Markdown: words and tables, nothing that a reader's text could turn into markup.
#include "onset/report/markdown.h"

#include <gtest/gtest.h>

namespace onset::testing {
namespace {

Page small_page() {
  Page page{.kind = "kind",
            .heading = "a_b",
            .lead = {"First.", "Second."},
            .highlights = {},
            .sections = {},
            .shared = nullptr};
  page.highlights = {{"ME layer", "11", "block 12 of 30"}, {"token", "0", ""}};
  page.answers = {{"Who?", "The FFN."}};
  return page;
}

TEST(MarkdownEscape, LeavesNoMarkup) {
  EXPECT_EQ(markdown_escape("a_b*c`d`"), "a\\_b\\*c\\`d\\`");
  EXPECT_EQ(markdown_escape("|x| <b> & #1"), "\\|x\\| &lt;b&gt; &amp; \\#1");
  EXPECT_EQ(markdown_escape("[link](x) ![y]"), "\\[link\\](x) \\!\\[y\\]");
  EXPECT_EQ(markdown_escape("two\nlines\tand\r"), "two lines and ");
  EXPECT_EQ(markdown_escape("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(markdown_escape("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
}

TEST(RenderMarkdown, HasHeadingWordsNumbersAndAnswersInThisOrder) {
  EXPECT_EQ(render_markdown(small_page()),
            "# a\\_b\n\nkind\n\nFirst.\n\nSecond.\n\n"
            "- **ME layer**: 11 (block 12 of 30)\n- **token**: 0\n\n"
            "- **Who?**: The FFN.\n");
}

TEST(RenderMarkdown, OfAFigureStayItsCaptionAndItsTables) {
  Page page = small_page();
  Figure figure{.id = "f",
                .kind = "bars",
                .see = "Two bars.",
                .read = "How to read a picture.",
                .alt = "A picture.",
                .data = {{"secret", 1}}};
  figure.tables = {{.caption = "The bars",
                    .header = {"name", "|x|"},
                    .numeric = {false, true},
                    .rows = {{"a|b", "1"}, {"c\nd", "2"}}}};
  page.sections.push_back(
      {.id = "s", .title = "Title", .text = {"Text."}, .figures = {figure}, .remark = "Small."});
  EXPECT_TRUE(
      render_markdown(page).ends_with("## Title\n\nText.\n\nTwo bars.\n\nThe bars:\n\n"
                                      "| name | \\|x\\| |\n| --- | ---: |\n"
                                      "| a\\|b | 1 |\n| c d | 2 |\n\nSmall.\n"))
      << render_markdown(page);
  for (const auto* gone : {"secret", "How to read a picture", "A picture"}) {
    EXPECT_EQ(render_markdown(page).find(gone), std::string::npos) << gone;
  }
}

}  // namespace
}  // namespace onset::testing
