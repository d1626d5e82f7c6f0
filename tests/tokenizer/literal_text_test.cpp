// What people write in a chat stays text, whatever it spells.
#include <algorithm>

#include "onset/tokenizer/chat.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

OrderedJson user(const std::string& content) {
  return OrderedJson::array({{{"role", "user"}, {"content", content}}});
}

std::vector<TokenId> chat_ids(const Tokenizer& tokenizer, const std::string& format,
                              const OrderedJson& messages) {
  const auto& known = chat_format(format);
  return encode_chat(known, tokenizer, render_chat_text(known, messages));
}

class LiteralChats : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    tokenizer = tokenizer_of(GetParam());
    if (tokenizer == nullptr) GTEST_SKIP() << "the demonstration model is not there";
  }
  const Tokenizer* tokenizer = nullptr;
};

// The fixtures' ids are those of the reference. Where no message spells a special token, quoting
// changes nothing.
TEST_P(LiteralChats, OrdinaryContentsGiveTheReferenceIds) {
  std::size_t compared = 0;
  for (const auto& row : read_jsonl(testing::data("tokenizers/" + GetParam() + ".chat.jsonl"))) {
    ChatOptions options;
    options.add_generation_prompt = row["add_generation_prompt"].get<bool>();
    options.enable_thinking = row["options"].value("enable_thinking", true);
    if (row["options"].contains("tools")) options.tools = row["options"]["tools"];
    const auto& format = chat_format(GetParam());
    const auto chat = render_chat_text(format, row["messages"], options);
    const bool spells_special =
        std::any_of(chat.contents.begin(), chat.contents.end(), [&](const TextSpan& span) {
          const auto content = chat.text.substr(span.start, span.end - span.start);
          const auto ids = tokenizer->encode(content);
          const auto& markers = format.markers;
          return std::any_of(ids.begin(), ids.end(),
                             [&](TokenId id) { return tokenizer->is_special(id); }) ||
                 std::any_of(markers.begin(), markers.end(), [&](std::string_view marker) {
                   return content.find(marker) != std::string::npos;
                 });
        });
    if (spells_special) continue;
    ++compared;
    EXPECT_EQ(encode_chat(format, *tokenizer, chat), ids_of(row["ids"])) << row.dump();
  }
  EXPECT_GE(compared, 10U);
}

// As many special tokens as with a harmless content of the same kind, and the text is kept.
TEST_P(LiteralChats, SpecialStringsInAMessageStayText) {
  const auto& format = chat_format(GetParam());
  const auto special_count = [&](const std::vector<TokenId>& ids) {
    return std::count_if(ids.begin(), ids.end(),
                         [&](TokenId id) { return tokenizer->is_special(id); });
  };
  const auto harmless = special_count(chat_ids(*tokenizer, GetParam(), user("Hello")));
  for (const auto marker : format.markers) {
    const std::string text = "Say " + std::string(marker) + " twice: " + std::string(marker);
    const auto ids = chat_ids(*tokenizer, GetParam(), user(text));
    EXPECT_EQ(special_count(ids), harmless) << marker;
    EXPECT_NE(tokenizer->decode(ids).find(text), std::string::npos) << marker;
    // And where it stands alone, at both ends of the content.
    EXPECT_EQ(special_count(chat_ids(*tokenizer, GetParam(), user(std::string(marker)))), harmless)
        << marker;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LiteralChats,
                         ::testing::Values("qwen3", "llama3_1", "deepseek_v3", "smollm2"),
                         [](const auto& row) { return row.param; });

// Every format notes where its messages stand.
TEST(LiteralChat, EveryFormatKnowsItsContents) {
  const auto messages = OrderedJson::parse(
      R"([{"role": "user", "content": "first"}, {"role": "assistant", "content": "second"},
          {"role": "user", "content": "third"}])");
  for (const auto& format : chat_formats()) {
    const auto chat = render_chat_text(format, messages);
    std::string said;
    for (const auto& span : chat.contents) {
      said += chat.text.substr(span.start, span.end - span.start) + "|";
    }
    const std::vector<std::string> words{"first|", "second|", "third|"};
    std::size_t at = 0;
    for (const auto& word : words) {
      const auto found = said.find(word, at);
      EXPECT_NE(found, std::string::npos) << format.name << ": " << said;
      at = found;
    }
    EXPECT_EQ(said.find('<'), std::string::npos) << format.name << ": " << said;
  }
}

// A marker that begins in a message and ends in what the format writes is none.
TEST(LiteralText, ATokenThatReachesIntoAQuoteIsText) {
  Json json = small_tokenizer({});
  json["added_tokens"] = Json::array({added_token("<x>", 256)});
  const Tokenizer tokenizer = open_json(json);
  const std::string text = "a<x>b<x>c";
  const auto encoded = [&](std::vector<TextSpan> spans) {
    return tokenizer.encode_literal(text, {spans});
  };
  EXPECT_EQ(encoded({}), tokenizer.encode(text));
  const auto count = [](const std::vector<TokenId>& ids) {
    return std::count(ids.begin(), ids.end(), 256);
  };
  EXPECT_EQ(count(encoded({})), 2);
  EXPECT_EQ(count(encoded({{1, 4}})), 1);
  EXPECT_EQ(count(encoded({{1, 2}})), 1);
  EXPECT_EQ(count(encoded({{3, 4}})), 1);
  EXPECT_EQ(count(encoded({{4, 5}})), 2);  // between the two
  EXPECT_EQ(count(encoded({{0, 1}, {5, 6}})), 1);
  EXPECT_EQ(count(encoded({{0, 9}})), 0);
  EXPECT_EQ(tokenizer.decode(encoded({{0, 9}})), text);
  EXPECT_EQ(encoded({{0, 9}}), tokenizer.encode(text, {.parse_special = false}));
}

// Added tokens that are not special are found in quotes as elsewhere, unless they are named.
TEST(LiteralText, OnlySpecialAndNamedTokensAreText) {
  Json json = small_tokenizer({});
  Json plain = added_token("<t>", 256);
  plain["special"] = false;
  plain["normalized"] = false;
  json["added_tokens"] = Json::array({plain});
  const Tokenizer tokenizer = open_json(json);
  const std::string text = "a<t>b";
  const std::vector<TextSpan> all{{0, text.size()}};
  EXPECT_EQ(tokenizer.encode_literal(text, {all}), tokenizer.encode(text));
  const std::vector<std::string_view> markers{"<t>"};
  EXPECT_EQ(tokenizer.encode_literal(text, {all, markers}),
            tokenizer.encode(text, {.parse_special = false}));
}

// Tokens that are looked for in the normalised text: their places move with it.
TEST(LiteralText, PlacesFollowTheNormalisedText) {
  Json json = small_tokenizer({});
  Json token = added_token("<x>", 256);
  token["normalized"] = true;
  json["added_tokens"] = Json::array({token});
  json["normalizer"] = {{"type", "NFC"}};
  const Tokenizer tokenizer = open_json(json);
  const std::string accents =
      "e\xCC\x81"
      "e\xCC\x81";  // shorter by two bytes each in NFC
  const std::string text = accents + "<x>" + accents + "<x>";
  const auto count = [&](std::vector<TextSpan> spans) {
    const auto ids = tokenizer.encode_literal(text, {spans});
    return std::count(ids.begin(), ids.end(), 256);
  };
  EXPECT_EQ(count({}), 2);
  EXPECT_EQ(count({{6, 9}}), 1);
  EXPECT_EQ(count({{0, 6}}), 2);
  EXPECT_EQ(count({{9, 15}}), 2);
  EXPECT_EQ(count({{15, 18}}), 1);
  EXPECT_EQ(count({{0, 18}}), 0);
}

}  // namespace
}  // namespace onset::testing
