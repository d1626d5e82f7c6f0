#include "onset/base/toml.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

TEST(Toml, ValuesAreReadByTheirTypes) {
  auto table = TomlTable::parse(
      "name = \"a\\nb\"\ncount = -3\nflag = true\nlist = ['x', \"y\"]\n[inner.deep]\nkey = 'v'\n"
      "[[rows]]\nid = 1\n[[rows]]\nid = 2\n",
      "t.toml");
  EXPECT_EQ(table.text("name"), "a\nb");
  EXPECT_EQ(table.find_integer("count", -5, 5), -3);
  EXPECT_EQ(table.find_boolean("flag"), true);
  EXPECT_EQ(table.texts("list"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(table.table("inner").table("deep").text("key"), "v");
  const auto rows = table.tables("rows");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(TomlTable(rows[1]).find_integer("id", 0, 9), 2);
  EXPECT_EQ(table.find_text("absent"), std::nullopt);
  EXPECT_TRUE(table.texts("absent").empty());
  table.refuse_others();
}

TEST(Toml, ErrorsNameFileLineAndKey) {
  auto table = TomlTable::parse("\n[a]\nb = 3\nrows = [ {x = 1},\n {x = 'y'} ]\n", "f.toml");
  auto inner = table.table("a");
  EXPECT_EQ(error_of([&] { return inner.text("b"); }),
            "f.toml:3: key \"a.b\" should be text, is number");
  EXPECT_EQ(error_of([&] { return inner.find_integer("b", 4, 9); }),
            "f.toml:3: key \"a.b\" is 3, should be 4 to 9");
  EXPECT_EQ(error_of([&] { return inner.tables("rows")[1].find_integer("x", 0, 9); }),
            "f.toml:5: key \"a.rows[1].x\" should be an integer, is string");
  EXPECT_EQ(error_of([&] { return inner.text("c"); }), "f.toml:2: key \"a.c\" is missing");
  EXPECT_EQ(error_of([&] { return table.text("top"); }), "f.toml: key \"top\" is missing");
}

TEST(Toml, AnUnknownKeyIsRefusedWithTheNearestKnownOne) {
  auto table = TomlTable::parse("question = 'a'\nanswr = 'b'\n", "f.toml");
  static_cast<void>(table.find_text("question"));
  static_cast<void>(table.find_text("answer"));
  EXPECT_EQ(error_of([&] {
              table.refuse_others();
              return 0;
            }),
            "f.toml:2: key \"answr\" is not known\ndid you mean \"answer\"?");
}

TEST(Toml, WhatIsNotTomlOrNotJsonIsAnError) {
  EXPECT_NE(error_of([] {
              return TomlTable::parse("a = 1\nb = = 2\n", "f.toml");
            }).find("f.toml:2: not valid TOML"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              return TomlTable::parse("a = 1979-05-27\n", "f.toml");
            }).find("f.toml:1: key \"a\" is a date"),
            std::string::npos);
  EXPECT_NE(error_of([] { return TomlTable::parse("\na = nan\n", "f.toml"); }).find("f.toml:2"),
            std::string::npos);
  EXPECT_NE(error_of([] { return TomlTable::parse("a = 1\na = 2\n", "f.toml"); }).find("f.toml:2"),
            std::string::npos);
}

}  // namespace
}  // namespace onset
