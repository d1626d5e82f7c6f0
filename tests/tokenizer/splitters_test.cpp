// Two routes to the same pieces: the matchers written by hand, and PCRE2 on the regex itself.
#include "onset/tokenizer/splitters.h"

#include <random>

#include "onset/tokenizer/pretokenizer.h"
#include "onset/tokenizer/unicode.h"
#include "support/support.h"

namespace onset::testing {
namespace {

std::vector<std::string> pieces_of(const PretokenizerStep& step, const std::string& text) {
  Pretokenizer pretokenizer;
  pretokenizer.steps.push_back(step);
  Pretokenizer::Scratch scratch;
  const std::string whole(pretokenizer.run(text, scratch));
  std::vector<std::string> pieces;
  std::size_t start = 0;
  for (const std::size_t end : scratch.ends) {
    pieces.push_back(whole.substr(start, end - start));
    start = end;
  }
  EXPECT_EQ(start, whole.size());
  return pieces;
}

PretokenizerStep by_hand(const KnownPattern& pattern) {
  PretokenizerStep step;
  step.known = &pattern;
  return step;
}

PretokenizerStep by_regex(std::string_view regex) {
  PretokenizerStep step;
  step.regex.emplace(regex, "test");
  return step;
}

// Texts in which the branches of the patterns meet.
class TextSource {
 public:
  TextSource() {
    for (const auto kind : {CharClass::letter, CharClass::number, CharClass::mark,
                            CharClass::punctuation, CharClass::symbol, CharClass::space}) {
      ranges_.push_back(class_ranges(kind));
    }
  }
  std::string next() {
    std::string text;
    for (std::size_t i = random_() % 24 + 1; i > 0; --i) append_char(text);
    return text;
  }

 private:
  void append_char(std::string& text) {
    constexpr std::u32string_view common =
        U"abestTreREvVlLmMdD\u017F''  \u00a0\t\n\r\n.,(x!_0123456789\u0301\u4e2d\u3042";
    const auto way = random_() % 10;
    if (way < 6) {
      append_utf8(text, common[random_() % common.size()]);
    } else if (way < 9) {
      const auto& ranges = ranges_[random_() % ranges_.size()];
      const auto& range = ranges[random_() % ranges.size()];
      append_utf8(text,
                  range.low + static_cast<char32_t>(random_() % (range.high - range.low + 1)));
    } else {
      constexpr std::u32string_view odd = U"\u200b\u00ad\ue000\u0378\x1c\x7f\ufeff\U0010ffff";
      append_utf8(text, odd[random_() % odd.size()]);
    }
  }
  std::mt19937 random_{11};
  std::vector<std::vector<CodeRange>> ranges_;
};

TEST(Splitters, MatchersEqualTheirRegexes) {
  TextSource source;
  std::vector<std::pair<PretokenizerStep, PretokenizerStep>> routes;
  for (const auto& pattern : known_patterns()) {
    routes.emplace_back(by_hand(pattern), by_regex(pattern.regex));
  }
  for (int round = 0; round < 3000; ++round) {
    const std::string text = source.next();
    for (std::size_t i = 0; i < routes.size(); ++i) {
      ASSERT_EQ(pieces_of(routes[i].first, text), pieces_of(routes[i].second, text))
          << known_patterns()[i].name << ": " << Json(text).dump(-1, ' ', true);
    }
  }
}

// Both ends of every range of a class, and some of its middle.
TEST(Splitters, TheEdgesOfTheClassesAreSplitAsByTheRegexes) {
  std::string text;
  for (char32_t code = 1; code < 0x10FFFF; ++code) {
    const bool edge =
        char_class(code) != char_class(code - 1) || char_class(code) != char_class(code + 1);
    if ((code >= 0xD800 && code <= 0xDFFF) || (!edge && code % 97 != 0)) continue;
    append_utf8(text, code);
    text += code % 2 == 0 ? "a " : "1 ";
  }
  for (const auto& pattern : known_patterns()) {
    EXPECT_EQ(pieces_of(by_hand(pattern), text), pieces_of(by_regex(pattern.regex), text))
        << pattern.name;
  }
}

using Pieces = std::vector<std::string>;

TEST(Splitters, LookAheadEndsWithThePiece) {
  Pretokenizer smollm;
  smollm.steps = {by_hand(pattern_named("digits")), by_hand(pattern_named("gpt2"))};
  Pretokenizer::Scratch scratch;
  static_cast<void>(smollm.run("x  12", scratch));
  EXPECT_EQ(scratch.ends, (std::vector<std::size_t>{1, 3, 4, 5}));
  EXPECT_EQ(pieces_of(by_hand(pattern_named("gpt2")), "x  12"), (Pieces{"x", " ", " 12"}));
}

TEST(Splitters, ContractionsFoldCaseInSomePatternsOnly) {
  const auto& qwen2 = by_hand(pattern_named("qwen2"));
  const auto& gpt2 = by_hand(pattern_named("gpt2"));
  EXPECT_EQ(pieces_of(qwen2, "a'S'\u017F'LL"), (Pieces{"a", "'S", "'\u017F", "'LL"}));
  EXPECT_EQ(pieces_of(gpt2, "a'S's"), (Pieces{"a", "'", "S", "'s"}));
}

TEST(Pretokenizer, BehavioursAreThoseOfTheReference) {
  // The example of the reference's documentation: "the-final--countdown" split at "-".
  const auto split = [](SplitBehavior behavior, bool literal) {
    PretokenizerStep step;
    if (literal) {
      step.literal = "-";
    } else {
      step.regex.emplace("-", "test");
    }
    step.behavior = behavior;
    return pieces_of(step, "the-final--countdown");
  };
  for (const bool literal : {false, true}) {
    EXPECT_EQ(split(SplitBehavior::removed, literal), (Pieces{"the", "final", "countdown"}));
    EXPECT_EQ(split(SplitBehavior::isolated, literal),
              (Pieces{"the", "-", "final", "-", "-", "countdown"}));
    EXPECT_EQ(split(SplitBehavior::merged_with_previous, literal),
              (Pieces{"the-", "final-", "-", "countdown"}));
    EXPECT_EQ(split(SplitBehavior::merged_with_next, literal),
              (Pieces{"the", "-final", "-", "-countdown"}));
    EXPECT_EQ(split(SplitBehavior::contiguous, literal),
              (Pieces{"the", "-", "final", "--", "countdown"}));
  }
}

TEST(Pretokenizer, InvertedRemovalKeepsTheMatches) {
  PretokenizerStep step = by_regex("\\p{L}+");
  step.behavior = SplitBehavior::removed;
  step.invert = true;
  EXPECT_EQ(pieces_of(step, "ab1cd 2"), (Pieces{"ab", "cd"}));
}

TEST(Regex, ClassesAreOursAndAlsoWorkNegatedAndInsideClasses) {
  // PCRE2's \s has U+180E, and its tables end at Unicode 14: U+1E4D0 is a letter since 15.
  EXPECT_EQ(pieces_of(by_regex("\\s"), "a\u180eb"), (Pieces{"a\u180eb"}));
  EXPECT_EQ(pieces_of(by_regex("\\p{L}"), "\U0001E4D01"), (Pieces{"\U0001E4D0", "1"}));
  EXPECT_EQ(pieces_of(by_regex("[^\\S\\n]+"), "a \n b"), (Pieces{"a", " ", "\n", " ", "b"}));
  EXPECT_EQ(pieces_of(by_regex("\\P{N}+"), "ab12"), (Pieces{"ab", "12"}));
  EXPECT_EQ(pieces_of(by_regex("[]a]+"), "]a-"), (Pieces{"]a", "-"}));
}

TEST(Regex, WhatIsNotKnownIsNamed) {
  const auto error = [](const char* regex) {
    return error_of([&] { return Regex(regex, "file: pre_tokenizer").find_all("").size(); });
  };
  EXPECT_NE(error("(").find("file: pre_tokenizer: the regex does not compile"), std::string::npos);
  EXPECT_NE(error("[a&&b]").find("intersection"), std::string::npos);
  EXPECT_NE(error("[a[b]]").find("class inside"), std::string::npos);
  EXPECT_NE(error("\\h").find("\\h"), std::string::npos);
  EXPECT_NE(error("a\\").find("backslash"), std::string::npos);
  EXPECT_NE(error("\\p{Foo}").find("does not compile"), std::string::npos);
  EXPECT_NE(error("\\pL").find("without a name"), std::string::npos);
}

TEST(Regex, EmptyMatchesMoveOnAndRunawayOnesAreErrors) {
  EXPECT_EQ(pieces_of(by_regex("x*"), "a\u00e9xb"), (Pieces{"a", "\u00e9", "x", "b"}));
  const std::string text(60, 'a');
  const auto message =
      error_of([&] { return Regex("(a+)+$(?<=b)", "file").find_all(text).size(); });
  EXPECT_NE(message.find("failed on a text"), std::string::npos) << message;
}

}  // namespace
}  // namespace onset::testing
