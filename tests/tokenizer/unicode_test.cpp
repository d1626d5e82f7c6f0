#include "onset/tokenizer/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "onset/tokenizer/nfc.h"
#include "support/support.h"

namespace onset::testing {
namespace {

std::string utf8_of(char32_t code) {
  std::string text;
  append_utf8(text, code);
  return text;
}

bool is_surrogate(char32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

TEST(Unicode, ClassesAreThoseOfTheReferenceEngine) {
  const auto source = read_json(testing::data("tokenizers/unicode_classes.json"));
  std::vector<CharClass> expected(0x110000, CharClass::other);
  const std::pair<const char*, CharClass> names[] = {
      {"L", CharClass::letter},      {"N", CharClass::number}, {"M", CharClass::mark},
      {"P", CharClass::punctuation}, {"S", CharClass::symbol}, {"space", CharClass::space}};
  for (const auto& [name, kind] : names) {
    for (const auto& range : source[name]) {
      for (auto code = range[0].get<unsigned>(); code <= range[1].get<unsigned>(); ++code) {
        expected[code] = kind;
      }
    }
  }
  for (char32_t code = 0; code < expected.size(); ++code) {
    ASSERT_EQ(char_class(code), expected[code]) << "U+" << std::hex << unsigned{code};
  }
  for (const auto& range : source["nfc_class0"]) {
    for (auto code = range[0].get<unsigned>(); code <= range[1].get<unsigned>(); ++code) {
      EXPECT_TRUE(is_nfc_class0(code)) << std::hex << code;
    }
  }
  EXPECT_FALSE(is_nfc_class0(0x301));
}

TEST(Unicode, EveryCodePointGoesThereAndBack) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    const std::string text = utf8_of(code);
    EXPECT_EQ(is_valid_utf8(text), !is_surrogate(code));
    const DecodedChar decoded = decode_char(text, 0);
    ASSERT_EQ(decoded.code, code);
    ASSERT_EQ(decoded.length, text.size());
  }
}

// The examples of the Unicode standard for "substitution of maximal subparts" (tables 3-8 to 3-11).
TEST(Unicode, BadSequencesBecomeOneReplacementEach) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(lossy_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(lossy_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(lossy_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(lossy_utf8(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(lossy_utf8("\xE2\x82"), r);
}

std::string by_utf8proc(const std::string& text) {
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> result(
      utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
  return reinterpret_cast<const char*>(result.get());
}

std::string nfc(const std::string& text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

TEST(Nfc, SingleCodePointsAndTheirNeighboursAreAsInUtf8proc) {
  for (char32_t code = 1; code <= 0x10FFFF; ++code) {
    if (is_surrogate(code) || is_nfc_class0(code)) continue;
    const std::string text = "a" + utf8_of(code) + "\u0323\u0301";
    ASSERT_EQ(nfc(text), by_utf8proc(text)) << "U+" << std::hex << unsigned{code};
  }
}

TEST(Nfc, RandomTextsAreAsInUtf8proc) {
  std::mt19937 random(7);
  const std::pair<char32_t, char32_t> pools[] = {
      {0x20, 0x7E},   {0xC0, 0x24F},    {0x300, 0x36F}, {0x1100, 0x11FF}, {0xAC00, 0xAC7F},
      {0x900, 0x9FF}, {0x1E00, 0x1FFF}, {0x5B0, 0x5EF}, {0x3040, 0x30FF}};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random() % 12 + 1; i > 0; --i) {
      const auto& [low, high] = pools[random() % std::size(pools)];
      const char32_t code = low + static_cast<char32_t>(random()) % (high - low + 1);
      if (is_nfc_class0(code) || code == 0x11A7) continue;  // see below
      text += utf8_of(code);
    }
    const std::string result = nfc(text);
    ASSERT_EQ(result, by_utf8proc(text)) << text;
    ASSERT_EQ(nfc(result), result);
  }
}

// Rule 6 of the fixtures: the reference's tables are older than utf8proc's.
TEST(Nfc, MarksOfNewerVersionsBlock) {
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(nfc("\U00011938"), "\U00011938");
  EXPECT_EQ(nfc("a\u0898\u0301"), "a\u0898\u0301");
  EXPECT_EQ(nfc("a\u0301\u0898"), "\u00e1\u0898");
  EXPECT_EQ(nfc("a\u0898\u0316"), "a\u0898\u0316");
  // U+11A7 is no trailing jamo, though it stands right before them.
  EXPECT_EQ(nfc("\uAC00\u11A7"), "\uAC00\u11A7");
}

TEST(Nfc, ALongRunOfMarksIsNotQuadratic) {
  std::string text = "a";
  std::string low;
  std::string high;
  for (int i = 0; i < 200000; ++i) {
    text += "\u0315\u0316";  // classes 232 and 220
    low += "\u0316";
    high += "\u0315";
  }
  EXPECT_EQ(nfc(text), "a" + low + high);
}

}  // namespace
}  // namespace onset::testing
