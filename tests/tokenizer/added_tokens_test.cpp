// The rules of the reference for tokens that are found in the text.
#include "onset/tokenizer/added_tokens.h"

#include <random>

#include "tokenizer/small_tokenizer.h"

namespace onset::testing {
namespace {

using Ids = std::vector<TokenId>;

// A tokenizer of single bytes, so that what an added token leaves to the text can be read off.
std::string encoded(const Json& tokenizer, const std::string& text) {
  std::string result;
  for (const TokenId id : open_json(tokenizer).encode(text)) {
    result += id < 256 ? std::string(1, static_cast<char>(id)) : "[" + std::to_string(id) + "]";
  }
  return result;
}

Json with_tokens(const std::vector<Json>& tokens) {
  Json tokenizer = small_tokenizer({});
  tokenizer["added_tokens"] = tokens;
  return tokenizer;
}

TEST(AddedTokens, TheLeftmostAndThenTheLongestIsTaken) {
  const Json tokenizer = with_tokens({added_token("<a", 300), added_token("<a>", 301),
                                      added_token("a>b", 302), added_token("<a>cd", 304)});
  EXPECT_EQ(encoded(tokenizer, "x<a>b"), "x[301]b");
  EXPECT_EQ(encoded(tokenizer, "<a>c<<ab"), "[301]c<[300]b");
  EXPECT_EQ(encoded(tokenizer, "<a>cd"), "[304]");
  EXPECT_EQ(encoded(tokenizer, "a>a>b"), "a>[302]");
  EXPECT_EQ(encoded(tokenizer, ""), "");
}

TEST(AddedTokens, EqualASearchAtEveryPlace) {
  std::mt19937 random(23);
  const auto word = [&](std::size_t longest) {
    std::string text;
    for (std::size_t i = random() % longest + 1; i > 0; --i) text += "ab<"[random() % 3];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<AddedToken> tokens;
    for (TokenId id = 0; id < 6; ++id) {
      const std::string content = word(5);
      const bool known = std::any_of(tokens.begin(), tokens.end(),
                                     [&](const auto& token) { return token.content == content; });
      if (!known) tokens.push_back({content, id});
    }
    const std::string text = word(40);
    std::vector<AddedTokenFinder::Match> matches;
    AddedTokenFinder(tokens).find(text, matches);
    std::size_t match = 0;
    for (std::size_t at = 0; at < text.size();) {
      const AddedToken* best = nullptr;
      for (const auto& token : tokens) {
        const bool here = text.compare(at, token.content.size(), token.content) == 0;
        if (here && (best == nullptr || token.content.size() > best->content.size())) best = &token;
      }
      if (best == nullptr) {
        ++at;
        continue;
      }
      ASSERT_LT(match, matches.size());
      EXPECT_EQ(matches[match].start, at);
      EXPECT_EQ(matches[match].id, best->id);
      at = matches[match].end;
      ++match;
    }
    EXPECT_EQ(match, matches.size());
  }
}

TEST(AddedTokens, TakeWhiteSpaceAlongWhereTheySaySo) {
  Json left = added_token("<m>", 300);
  left["lstrip"] = true;
  Json right = added_token("<r>", 301);
  right["rstrip"] = true;
  const Json tokenizer = with_tokens({left, right});
  EXPECT_EQ(encoded(tokenizer, "a \u00a0\n<m> b"), "a[300] b");
  EXPECT_EQ(encoded(tokenizer, "a <r> \t\u3000b"), "a [301]b");
  EXPECT_EQ(encoded(tokenizer, "a<r>  <m>  <r> "), "a[301][300]  [301]");
}

TEST(AddedTokens, SingleWordsAreNotFoundInsideWords) {
  Json token = added_token("cat", 300);
  token["single_word"] = true;
  const Json tokenizer = with_tokens({token});
  EXPECT_EQ(encoded(tokenizer, "cat concat cats cat_ cat. (cat)9cat"),
            "[300] concat cats cat_ [300]. ([300])9cat");
  EXPECT_EQ(encoded(tokenizer, "-cat\u2014cat"), "-[300]\xE2\x80\x94[300]");
}

TEST(AddedTokens, NormalizedOnesAreFoundInTheNormalisedText) {
  Json plain = added_token("e\u0301", 300);
  Json normalized = added_token("o\u0301", 301);
  normalized["normalized"] = true;
  Json tokenizer = with_tokens({plain, normalized});
  tokenizer["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(encoded(tokenizer, "e\u0301"), "[300]");
  EXPECT_EQ(encoded(tokenizer, "\u00e9"), "\xC3\xA9");
  EXPECT_EQ(encoded(tokenizer, "o\u0301\u00f3"), "[301][301]");
}

TEST(AddedTokens, NormalisingStopsAtThem) {
  Json tokenizer = with_tokens({added_token("<e>", 300)});
  tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
  EXPECT_EQ(encoded(tokenizer, "<e>\u0301"), "[300]\xCC\x81");
  EXPECT_EQ(encoded(tokenizer, "e\u0301"), "\xC3\xA9");
}

TEST(AddedTokens, DecodeToTheirContent) {
  const Json tokenizer =
      with_tokens({added_token("<\uFF5CUser\uFF5C>", 300), added_token("  ", 301)});
  const Tokenizer opened = open_json(tokenizer);
  EXPECT_EQ(opened.decode(Ids{300, 'a', 301}), "<\uFF5CUser\uFF5C>a  ");
  EXPECT_EQ(opened.piece(300), "<\uFF5CUser\uFF5C>");
  EXPECT_EQ(opened.find("  "), 301);
}

}  // namespace
}  // namespace onset::testing
