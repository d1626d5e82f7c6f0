// Text as it comes, token by token, against the text of all tokens at once.
#include "onset/generate/text_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "onset/tokenizer/unicode.h"
#include "support/support.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

// A tokenizer.json with byte fallback, as converted from SentencePiece (Llama 2): ids 0 to 2 are
// special, 3 to 258 bytes, then a few pieces.
Tokenizer with_byte_fallback() {
  OrderedJson vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">"] = 3 + byte;
  }
  int id = 259;
  for (const char* piece : {"\u2581", "a", "b", "\u2581a", "\u2581\u2581", "\u00e9", "ab"}) {
    vocabulary[piece] = id++;
  }
  OrderedJson added = OrderedJson::array();
  for (int i = 0; i < 3; ++i) {
    added.push_back({{"id", i},
                     {"content", i == 0   ? "<unk>"
                                 : i == 1 ? "<s>"
                                          : "</s>"},
                     {"special", true},
                     {"normalized", false}});
  }
  const OrderedJson space = {{"String", "\u2581"}};
  const OrderedJson json = {
      {"added_tokens", added},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "Prepend"}, {"prepend", "\u2581"}},
          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
      {"pre_tokenizer", nullptr},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"}, {"pattern", space}, {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"vocab", vocabulary},
        {"merges", {"\u2581 a", "\u2581 \u2581", "a b"}}}}};
  const TemporaryFolder folder;
  static_cast<void>(folder.write("tokenizer.json", json.dump()));
  return Tokenizer::open(folder.path());
}

Tokenizer opened(const std::string& name) {
  if (name == "byte_fallback") return with_byte_fallback();
  if (name == "smollm2") return Tokenizer::open(demo_model());
  return Tokenizer::open(unpacked("tokenizers/" + name));
}

class Continuations : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "smollm2" && demo_model().empty()) GTEST_SKIP() << "run scripts/setup";
    tokenizer_.emplace(opened(GetParam()));
  }

  [[nodiscard]] std::string decoded(const Ids& ids, bool show_special) const {
    return tokenizer_->decode(std::vector<TokenId>(ids.begin(), ids.end()),
                              {.skip_special = !show_special});
  }

  // Compares where the prompt ends at the end of a character, and tells whether it did.
  bool check(const Ids& prompt, const Ids& rest, bool show_special) const {
    Ids all = prompt;
    all.insert(all.end(), rest.begin(), rest.end());
    const std::string before = decoded(prompt, show_special);
    const std::string expected = decoded(all, show_special);
    if (!expected.starts_with(before) || before.ends_with("\uFFFD")) return false;
    TextStream stream(*tokenizer_, prompt, show_special);
    std::string text;
    for (const auto id : rest) {
      const std::string part = stream.push(id);
      EXPECT_TRUE(is_valid_utf8(part));
      text += part;
      EXPECT_TRUE(expected.substr(before.size()).starts_with(text));
    }
    text += stream.finish();
    EXPECT_EQ(text, expected.substr(before.size()));
    return true;
  }

  std::optional<Tokenizer> tokenizer_;
};

TEST_P(Continuations, OfTextsCutAnywhereEqualTheDecodedWhole) {
  std::mt19937_64 random(4);
  int checked = 0;
  for (const auto& row : read_jsonl(testing::data("tokenizers/qwen3.encode.jsonl"))) {
    const auto tokens = tokenizer_->encode(row["text"].get<std::string>());
    const auto cut = static_cast<std::ptrdiff_t>(random() % (tokens.size() + 1));
    checked += check({tokens.begin(), tokens.begin() + cut}, {tokens.begin() + cut, tokens.end()},
                     random() % 2 == 0)
                   ? 1
                   : 0;
  }
  EXPECT_GT(checked, 200);
}

TEST_P(Continuations, OfRandomTokensEqualTheDecodedWhole) {
  std::mt19937_64 random(6);
  Ids known;
  Ids odd;  // bytes, parts of characters and special tokens
  for (std::int64_t id = 0; id < tokenizer_->vocabulary_size(); ++id) {
    if (!tokenizer_->contains(id)) continue;
    known.push_back(id);
    const auto token = static_cast<TokenId>(id);
    if (tokenizer_->is_special(token) || !is_valid_utf8(tokenizer_->piece_bytes(token)) ||
        tokenizer_->is_byte(token)) {
      odd.push_back(id);
    }
  }
  ASSERT_FALSE(odd.empty());
  int checked = 0;
  for (int round = 0; round < 400; ++round) {
    const auto draw = [&](std::size_t most) {
      Ids ids(random() % most);
      for (auto& id : ids) {
        const Ids& from = random() % 2 == 0 ? odd : known;
        id = from[random() % from.size()];
      }
      return ids;
    };
    checked += check(draw(4), draw(12), random() % 2 == 0) ? 1 : 0;
  }
  EXPECT_GT(checked, 100);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Continuations,
                         ::testing::Values("qwen3", "llama3_1", "deepseek_v3", "gpt2", "llama2_spm",
                                           "smollm2", "byte_fallback", "ggml/ggml-vocab-phi-3.gguf",
                                           "sentencepiece/nmt.model"),
                         [](const auto& row) {
                           std::string name = row.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

TEST(TextStream, AContinuationKeepsTheSpaceAndATextDoesNot) {
  const Tokenizer tokenizer = opened("llama2_spm");
  const auto hello = static_cast<std::int64_t>(*tokenizer.find("\u2581Hello"));
  TextStream behind(tokenizer, Ids{1, hello}, /*show_special=*/false);
  EXPECT_EQ(behind.push(hello), " Hello");
  TextStream first(tokenizer, Ids{1}, /*show_special=*/false);  // BOS alone
  EXPECT_EQ(first.push(hello), "Hello");
  EXPECT_EQ(first.push(hello), " Hello");
}

TEST(TextStream, HoldsBackPartsOfCharacters) {
  const Tokenizer tokenizer = opened("gpt2");
  const auto ids = tokenizer.encode("a\U0001F9A5b");  // four bytes in several tokens
  TextStream stream(tokenizer, {}, false);
  std::vector<std::string> parts;
  for (const auto id : ids) {
    if (auto part = stream.push(id); !part.empty()) parts.push_back(std::move(part));
  }
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "\U0001F9A5", "b"}));
  TextStream cut(tokenizer, {}, false);
  EXPECT_EQ(cut.push(ids[0]), "a");
  EXPECT_EQ(cut.push(ids[1]), "");
  EXPECT_EQ(cut.finish(), "\uFFFD");
}

TEST(TextStream, TokensBeyondTheVocabularyHaveNoText) {
  const Tokenizer tokenizer = opened("qwen3");
  TextStream stream(tokenizer, Ids{151900}, false);
  EXPECT_EQ(stream.push(151935), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, SpecialTokensAreShownWhereWanted) {
  const Tokenizer tokenizer = opened("qwen3");
  const auto end = static_cast<std::int64_t>(*tokenizer.find("<|im_end|>"));
  EXPECT_EQ(TextStream(tokenizer, {}, false).push(end), "");
  EXPECT_EQ(TextStream(tokenizer, {}, true).push(end), "<|im_end|>");
}

TEST(StopFinder, EndsBeforeTheStringThatEndsFirst) {
  StopFinder finder({"END", "\n\n"});
  EXPECT_EQ(finder.push("one E"), "one ");
  EXPECT_EQ(finder.push("Ntwo\n"), "ENtwo");
  EXPECT_FALSE(finder.found());
  EXPECT_EQ(finder.push("\nthree END"), "");
  EXPECT_TRUE(finder.found());
  EXPECT_EQ(finder.push("more"), "");
  EXPECT_EQ(finder.finish(), "");
}

TEST(StopFinder, GivesWhatIsLeftAtTheEnd) {
  StopFinder finder({"abc"});
  EXPECT_EQ(finder.push("xab"), "x");
  EXPECT_EQ(finder.finish(), "ab");
}

// Against: every prefix of the text is looked at; the shortest that ends with a stop string, of
// these the longest string.
TEST(StopFinder, DoesNotDependOnHowTheTextIsCut) {
  std::mt19937_64 random(8);
  const auto text_of = [&](std::size_t most) {
    std::string text(random() % most, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::string text = text_of(12);
    std::vector<std::string> stops{text_of(5), text_of(4), text_of(3)};
    std::string expected = text;
    bool found = false;
    for (std::size_t end = 1; end <= text.size() && !found; ++end) {
      std::size_t longest = 0;
      for (const auto& stop : stops) {
        if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
      }
      found = longest > 0;
      if (found) expected = text.substr(0, end - longest);
    }
    StopFinder finder(stops);
    std::string given;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t count = 1 + random() % 4;
      given += finder.push(text.substr(at, count));
      at += count;
    }
    given += finder.finish();
    EXPECT_EQ(given, expected) << text << " / " << stops[0] << " / " << stops[1] << " / "
                               << stops[2];
    EXPECT_EQ(finder.found(), found);
  }
}

}  // namespace
}  // namespace onset::testing
