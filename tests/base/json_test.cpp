#include "onset/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "onset/base/lenient_json.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

TEST(ParseJson, SaysWhereTheMistakeIs) {
  EXPECT_EQ(parse_json("[1]", "x.json"), Json::array({1}));
  EXPECT_EQ(error_of([] { (void)parse_json("{\"a\":}", "x.json"); }),
            "x.json: not valid JSON at byte 6");
  EXPECT_EQ(error_of([] { (void)parse_json("", "x.json"); }), "x.json: not valid JSON at byte 1");
  EXPECT_EQ(error_of([] { (void)parse_json("\"\xFF\"", "x.json"); }),
            "x.json: not valid UTF-8 at byte 2");
}

TEST(ParseJson, RefusesDeepNestingThatPrintingWouldNotSurvive) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(500), "x").is_array());
  EXPECT_EQ(error_of([&] { (void)parse_json(nested(501), "x"); }),
            "x: nested more than 500 deep at byte 501");
  EXPECT_EQ(error_of([&] { (void)parse_ordered_json(nested(1'000'000), "x"); }),
            "x: nested more than 500 deep at byte 501");
  // Brackets in strings do not count, nor do escaped quotes end one.
  EXPECT_TRUE(parse_json("\"\\\"" + std::string(1000, '[') + "\"", "x").is_string());
}

TEST(ParseJson, SaysThatANumberIsOutOfRange) {
  EXPECT_EQ(error_of([&] { (void)parse_json("{\"a\": 1e400}", "x"); }),
            "x: not valid JSON: holds a number that is out of range");
}

TEST(ParseJson, RefusesANulByteWhereverItStands) {
  const std::string text = std::string("{\"ids\":[1,2]}") + '\0' + "{\"ids\":[3]}";
  EXPECT_EQ(error_of([&] { (void)parse_json(text, "x"); }),
            "x: not valid JSON at byte 14: a NUL byte");
  EXPECT_EQ(error_of([&] { (void)parse_ordered_json(text, "x"); }),
            "x: not valid JSON at byte 14: a NUL byte");
  EXPECT_EQ(error_of([] { (void)parse_lenient_json(std::string("1\0", 2), "x"); }),
            "x: not valid JSON at byte 2: a NUL byte");
  EXPECT_EQ(error_of([] { (void)parse_json(std::string("\"a\0\"", 4), "x"); }),
            "x: not valid JSON at byte 3");
  EXPECT_EQ(parse_json("\"a\\u0000\"", "x"), std::string("a\0", 2));
}

TEST(ParseJson, RefusesAKeyThatAnObjectNamesTwice) {
  const char* nested = R"([{"a": {"b": 1, "c": 2, "\u0062": 3}}])";
  EXPECT_EQ(error_of([&] { (void)parse_json(nested, "x"); }),
            "x: key \"b\" is there twice in one object");
  EXPECT_EQ(error_of([&] { (void)parse_ordered_json(nested, "x"); }),
            "x: key \"b\" is there twice in one object");
  EXPECT_EQ(parse_lenient_json(nested, "x")[0]["a"]["b"], 3);
  // The same key in objects inside and beside each other is no repetition.
  const Json apart = parse_json(R"({"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}], "c": {}})", "x");
  EXPECT_EQ(apart["b"][1]["a"], 3);
}

TEST(TypedMembers, GiveTheValueOrNothing) {
  const Json object = {{"i", -5},   {"u", UINT64_MAX}, {"f", 0.5},
                       {"b", true}, {"s", "x"},        {"n", nullptr}};
  EXPECT_EQ(find_int(object, "i", "w"), -5);
  EXPECT_EQ(find_number(object, "i", "w"), -5.0);
  EXPECT_EQ(find_number(object, "f", "w"), 0.5);
  EXPECT_EQ(find_bool(object, "b", "w"), true);
  EXPECT_EQ(find_string(object, "s", "w"), "x");
  EXPECT_EQ(find_int(object, "n", "w"), std::nullopt);
  EXPECT_EQ(find_int(object, "absent", "w"), std::nullopt);
  EXPECT_EQ(find_int(Json::array(), "i", "w"), std::nullopt);
}

TEST(TypedMembers, RefuseAnotherTypeByName) {
  const Json object = {{"u", UINT64_MAX}, {"f", 0.5}, {"s", "x"}};
  EXPECT_EQ(error_of([&] { (void)find_int(object, "u", "x.json"); }),
            "x.json: key \"u\" should be an integer below 2^63, is number");
  EXPECT_EQ(error_of([&] { (void)find_int(object, "f", "x.json"); }),
            "x.json: key \"f\" should be an integer, is number");
  EXPECT_EQ(error_of([&] { (void)find_number(object, "s", "x.json"); }),
            "x.json: key \"s\" should be a number, is string");
  EXPECT_EQ(error_of([&] { (void)find_bool(object, "s", "x.json"); }),
            "x.json: key \"s\" should be true or false, is string");
  EXPECT_EQ(error_of([&] { (void)find_string(object, "f", "x.json"); }),
            "x.json: key \"f\" should be a string, is number");
}

TEST(Numbers, NanAndInfinityBecomeNull) {
  EXPECT_EQ(finite_or_null(1.5).dump(), "1.5");
  EXPECT_EQ(finite_or_null(std::nan("")).dump(), "null");
  EXPECT_EQ(finite_or_null(-std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(float_or_null(std::numeric_limits<float>::infinity()).dump(), "null");
}

TEST(Numbers, FloatsPrintShortAndReadBack) {
  EXPECT_EQ(float_or_null(23738.1F).dump(), "23738.1");
  EXPECT_EQ(float_or_null(0.1F).dump(), "0.1");
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(static_cast<float>(Json::parse(float_or_null(value).dump()).get<double>()), value);
  }
}

TEST(ValidUtf8, ReplacesBadBytesAlone) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("aüẞ😀"), "aüẞ😀");
  EXPECT_EQ(valid_utf8("a\xFF"
                       "b"),
            "a" + bad + "b");
  EXPECT_EQ(valid_utf8("\xC0\x80"), bad + bad);                      // overlong
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // beyond U+10FFFF
  EXPECT_EQ(valid_utf8("\xF0\x9F\x98"), bad + bad + bad);            // cut
}

// Whatever comes in, what goes out can be printed as JSON, and doing it twice changes nothing.
TEST(ValidUtf8, RandomBytesBecomePrintable) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 30, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string text = valid_utf8(bytes);
    EXPECT_EQ(Json::parse(Json(text).dump()).get<std::string>(), text);
    EXPECT_EQ(valid_utf8(text), text);
  }
}

}  // namespace
}  // namespace onset
