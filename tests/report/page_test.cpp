// A page keeps to its size: the figures with the most data go first, and their place says so.
#include "onset/report/page.h"

#include <gtest/gtest.h>

#include "onset/base/error.h"
#include "support/page_data.h"

namespace onset::testing {
namespace {

Figure figure_of_size(const std::string& id, std::size_t letters) {
  Figure figure{.id = id,
                .kind = "magnitude",
                .see = str_cat("see ", id),
                .read = str_cat("read ", id),
                .alt = str_cat("alt ", id),
                .data = {{"text", std::string(letters, 'x')}}};
  figure.tables = {
      {.caption = str_cat("table ", id), .header = {"a"}, .numeric = {true}, .rows = {{"1"}}}};
  return figure;
}

Page page_of(const std::vector<std::size_t>& sizes) {
  Page page{.kind = "k",
            .heading = "h",
            .lead = {"lead"},
            .highlights = {},
            .sections = {},
            .shared = nullptr};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    page.sections.push_back({.id = str_cat("s", i),
                             .title = "Section",
                             .figures = {figure_of_size(str_cat("f", i), sizes[i])}});
  }
  return page;
}

std::vector<std::string> drawn(const Page& page) {
  std::vector<std::string> ids;
  const auto data = page_data_of(render_page(page));
  for (const auto& figure : data["figures"]) ids.push_back(figure["id"]);
  return ids;
}

constexpr const char* notice = "This picture is left out";

TEST(FitPage, WhatFitsStaysAsItIs) {
  Page page = page_of({100'000, 300'000, 200'000});
  const auto before = render_page(page);
  fit_page(page, before.size());
  EXPECT_EQ(render_page(page), before);
  EXPECT_EQ(before.find(notice), std::string::npos);
}

TEST(FitPage, OneByteTooManyTakesTheLargestFigureAndNoOther) {
  Page page = page_of({100'000, 300'000, 200'000});
  const auto before = render_page(page).size();
  fit_page(page, before - 1);
  const auto html = render_page(page);
  // The data of 300,000 letters are gone; a notice and no more came in their place.
  EXPECT_LT(html.size(), before - 299'000);
  EXPECT_GT(html.size(), before - 301'000);
  EXPECT_EQ(drawn(page), (std::vector<std::string>{"f0", "f2"}));
  EXPECT_NE(html.find(notice), std::string::npos);
  EXPECT_EQ(html.find("id=\"f1\""), std::string::npos);
  EXPECT_NE(html.find("see f1"), std::string::npos);
  EXPECT_NE(html.find("table f1"), std::string::npos);
}

TEST(FitPage, TakesOneAfterTheOtherUntilItFits) {
  Page page = page_of({100'000, 300'000, 200'000});
  const auto whole = render_page(page).size();
  const std::size_t budget = whole - 350'000;
  fit_page(page, budget);
  EXPECT_LE(render_page(page).size(), budget);
  EXPECT_EQ(drawn(page), (std::vector<std::string>{"f0"}));
}

// A budget that no page can keep: the pictures go, words and tables stay.
TEST(FitPage, WordsAndTablesAlwaysStay) {
  Page page = page_of({1000, 2000});
  fit_page(page, 10);
  EXPECT_TRUE(drawn(page).empty());
  const auto html = render_page(page);
  for (const auto* text : {"lead", "see f0", "see f1", "table f0", "table f1"}) {
    EXPECT_NE(html.find(text), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace onset::testing
