// Text and data in a page: nothing from a prompt, a vocabulary or a path becomes markup.
#include "onset/report/html.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "onset/report/assets.h"

namespace onset::testing {
namespace {

TEST(HtmlEscape, LeavesNoMarkup) {
  EXPECT_EQ(html_escape("<b class=\"x\">&'</b>"),
            "&lt;b class=&quot;x&quot;&gt;&amp;&#39;&lt;/b&gt;");
  EXPECT_EQ(html_escape("a\nb\tc"), "a\nb\tc");
}

TEST(HtmlEscape, ReplacesWhatIsNoText) {
  EXPECT_EQ(html_escape(std::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(html_escape("\xC3("), "\xEF\xBF\xBD(");
  EXPECT_EQ(html_escape("\x1B[31m"), "\xEF\xBF\xBD[31m");
  EXPECT_EQ(html_escape("Versp\xC3\xA4tung"), "Versp\xC3\xA4tung");
}

TEST(ScriptJson, CannotEndTheScriptOrOpenAComment) {
  const OrderedJson value{{"</script>", "</SCRIPT><!-- <script> ]]> & \xE2\x80\xA8 \xE2\x80\xA9"}};
  const auto json = script_json(value);
  EXPECT_EQ(json.find_first_of("<>&"), std::string::npos) << json;
  EXPECT_TRUE(std::all_of(json.begin(), json.end(),
                          [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  EXPECT_NE(json.find("\\u2028"), std::string::npos);
  EXPECT_EQ(OrderedJson::parse(json), value);
}

TEST(ScriptJson, HasNoNanAndNoBadUtf8) {
  const OrderedJson value{{"nan", std::nan("")},
                          {"infinity", std::numeric_limits<double>::infinity()},
                          {"text", "a\xFFz"}};
  const auto read = OrderedJson::parse(script_json(value));
  EXPECT_TRUE(read["nan"].is_null());
  EXPECT_TRUE(read["infinity"].is_null());
  EXPECT_EQ(read["text"], "a\xEF\xBF\xBDz");
}

TEST(PictureNumber, KeepsFiveDigits) {
  EXPECT_EQ(picture_number(23738.1F).dump(), "23738.0");
  EXPECT_EQ(picture_number(0.0123456F).dump(), "0.012346");
  EXPECT_EQ(picture_number(0.0F).dump(), "0.0");
  EXPECT_TRUE(picture_number(std::numeric_limits<float>::infinity()).is_null());
}

TEST(NumberText, IsForPeople) {
  EXPECT_EQ(number_text(23738.1), "23,738");
  EXPECT_EQ(number_text(-1234567), "-1,234,567");
  EXPECT_EQ(number_text(9055.5), "9056");
  EXPECT_EQ(number_text(193.24), "193.2");
  EXPECT_EQ(number_text(100), "100");
  EXPECT_EQ(number_text(0.5), "0.5");
  EXPECT_EQ(number_text(0.04123), "0.0412");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(1e-5), "1e-05");
}

TEST(Shortened, CutsBetweenCodePoints) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "ab\xE2\x80\xA6");
  EXPECT_EQ(shortened("\xC3\xA4\xC3\xB6\xC3\xBC", 2), "\xC3\xA4\xE2\x80\xA6");
}

TEST(FillPlaces, IsNotFooledByWhatItFillsIn) {
  EXPECT_EQ(fill_places("<{{a}}|{{b}}>", {{"a", "{{b}}"}, {"b", "2"}}), "<{{b}}|2>");
  EXPECT_THROW(static_cast<void>(fill_places("{{c}}", {{"a", "1"}})), std::logic_error);
}

// What is put between <script> tags as it is must not end them.
TEST(Assets, ScriptsStayInTheirTags) {
  for (const auto script : {plotly_js(), matrix_figures_js(), explain_figures_js(),
                            comparison_figures_js(), page_js()}) {
    std::string lower(script);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    EXPECT_GT(lower.size(), 1000U);
    EXPECT_EQ(lower.find("</script"), std::string::npos);
    EXPECT_EQ(lower.find("<!--"), std::string::npos);
    EXPECT_EQ(lower.find("<script"), std::string::npos);
  }
  EXPECT_NE(plotly_js().substr(0, 300).find("MIT license"), std::string_view::npos);
  EXPECT_EQ(page_css().find("</style"), std::string_view::npos);
}

}  // namespace
}  // namespace onset::testing
