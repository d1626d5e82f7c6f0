#include "onset/eval/prompt_template.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

const OrderedJson row{{"question", " \u00A0What is {x}?\n"},
                      {"choices", {{"text", {"a", "b"}}, {"label", {"A", "B"}}}},
                      {"answer", 3},
                      {"flag", true},
                      {"none", nullptr}};

std::string rendered(std::string_view text) {
  return PromptTemplate(text, "t").render(row, "f:1", {{"part", "us_history"}});
}

TEST(PromptTemplate, PlacesAreFilledWithFieldsOfTheRow) {
  EXPECT_EQ(rendered("Q: {question|strip}\nA. {choices.text[1]}\n{answer} {flag} [{none}]"),
            "Q: What is {x}?\nA. b\n3 true []");
  EXPECT_EQ(rendered("about {part|words|upper}."), "about US HISTORY.");
  EXPECT_EQ(rendered("\\boxed{{{answer}}} }}{{"), "\\boxed{3} }{");
  EXPECT_EQ(rendered(""), "");
}

TEST(PromptTemplate, AListIsGivenWhole) {
  const PromptTemplate list("{choices.label}", "t");
  EXPECT_TRUE(list.is_one_place());
  EXPECT_EQ(list.render_list(row, "f:1"), (std::vector<std::string>{"A", "B"}));
  EXPECT_FALSE(PromptTemplate("{a} ", "t").is_one_place());
  EXPECT_NE(error_of([] {
              return PromptTemplate("{answer}", "t").render_list(row, "f:1");
            }).find("f:1: field \"answer\" should be a list"),
            std::string::npos);
}

TEST(PromptTemplate, RowsWithoutTheFieldAreAnErrorThatNamesThem) {
  EXPECT_EQ(error_of([] { return rendered("{questoin}"); }),
            "f:1: no field \"questoin\"\nit has question, choices, answer, flag, none");
  EXPECT_EQ(error_of([] { return rendered("{choices.text[2]}"); }),
            "f:1: no field \"choices.text[2]\", the list has 2 values");
  EXPECT_EQ(error_of([] { return rendered("{choices}"); }),
            "f:1: field \"choices\" should be text or a number, is object");
}

TEST(PromptTemplate, WhatIsNoTemplateIsRefused) {
  for (const auto* text : {"{", "}", "{}", "{a", "a}b", "{a b}", "{[0]}", "{a[]}", "{a[x]}", "{a.}",
                           "{a|nothing}", "{.a}", "{a[99999999999]}"}) {
    EXPECT_NE(error_of([&] { return PromptTemplate(text, "f.toml:3"); }).find("f.toml:3: "),
              std::string::npos)
        << text;
  }
}

TEST(PromptTemplate, TheFirstPlaceAlone) {
  const OrderedJson asking{{"question", " Why? "}, {"choices", {"a", "b"}}};
  const PromptTemplate asked("Of {part}: {question|strip} {choices[0]}", "here");
  EXPECT_EQ(asked.render_first(asking, "row", {{"part", "law"}}), "law");
  EXPECT_EQ(PromptTemplate("Q: {question|strip}\nA:", "here").render_first(asking, "row"), "Why?");
  EXPECT_EQ(PromptTemplate("Answer:", "here").render_first(asking, "row"), "");
}

}  // namespace
}  // namespace onset
