// Every line of the fixtures that the reference tokenizers made.
#include <algorithm>
#include <iterator>
#include <sstream>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

class Fixtures : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    tokenizer = tokenizer_of(GetParam());
    if (tokenizer == nullptr) GTEST_SKIP() << "the demonstration model is not there";
    rows = read_jsonl(testing::data("tokenizers/" + GetParam() + ".encode.jsonl"));
    ASSERT_EQ(rows.size(), 334U);
    // SentencePiece itself takes special strings as text.
    parse_special = GetParam() != "llama2_spm";
  }
  const Tokenizer* tokenizer = nullptr;
  std::vector<OrderedJson> rows;
  bool parse_special = true;
};

TEST_P(Fixtures, EncodeGivesTheReferenceIds) {
  for (const auto& row : rows) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = parse_special}), ids_of(row["ids"]))
        << row.dump();
  }
}

TEST_P(Fixtures, AddSpecialAddsWhatTheConfigurationAdds) {
  for (const auto& row : rows) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = parse_special, .add_special = true}),
              ids_of(row["ids_special"]))
        << row.dump();
  }
}

TEST_P(Fixtures, DecodeGivesTheReferenceText) {
  for (const auto& row : rows) {
    EXPECT_EQ(tokenizer->decode(ids_of(row["ids"])), row["decoded"].get<std::string>())
        << row.dump();
  }
}

TEST_P(Fixtures, PiecesJoinToTheDecodedText) {
  for (const auto& row : rows) {
    std::string bytes;
    for (const TokenId id : ids_of(row["ids"])) {
      bytes += tokenizer->piece_bytes(id);
      ASSERT_EQ(tokenizer->find(tokenizer->piece(id)), id);
    }
    if (!parse_special && bytes.starts_with(' ')) bytes.erase(0, 1);  // the dummy prefix
    // Lines that lost bytes on the way decode with U+FFFD in their place.
    if (bytes == row["text"].get<std::string>()) {
      EXPECT_EQ(bytes, row["decoded"].get<std::string>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Fixtures,
                         ::testing::Values("qwen3", "llama3_1", "deepseek_v3", "gpt2", "llama2_spm",
                                           "smollm2"),
                         [](const auto& row) { return row.param; });

// The special strings of Llama 2 parsed by the rule that its configuration names.
void expect_parsed(const Tokenizer& tokenizer, const std::string& field) {
  for (const auto& row : read_jsonl(testing::data("tokenizers/llama2_spm.encode.jsonl"))) {
    const auto& expected = row.contains(field) ? row[field] : row["ids"];
    EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>()), ids_of(expected)) << row.dump();
  }
}

TEST(SentencePieceFixtures, TheOldPrefixRuleIsTheDefaultOfModelAndGguf) {
  expect_parsed(llama2(), "ids_parse_legacy");
  expect_parsed(opened("ggml/ggml-vocab-llama-spm.gguf"), "ids_parse_legacy");
}

TEST(SentencePieceFixtures, LegacyFalsePutsThePrefixBeforeTheTextOnly) {
  expect_parsed(llama2_new_prefix(), "ids_parse");
}

TEST(SentencePieceFixtures, GgufGivesTheIdsOfTheModel) {
  const Tokenizer& gguf = opened("ggml/ggml-vocab-llama-spm.gguf");
  for (const auto& row : read_jsonl(testing::data("tokenizers/llama2_spm.encode.jsonl"))) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(gguf.encode(text, {.parse_special = false}), ids_of(row["ids"])) << row.dump();
    EXPECT_EQ(gguf.decode(ids_of(row["ids"])), row["decoded"].get<std::string>()) << row.dump();
  }
}

// Models made for what Llama 2's has not: a table of characters, unknown characters, user-defined
// pieces, pieces over spaces, unused pieces, equal scores (see their SOURCE.txt).
class SentencePieceModels : public ::testing::TestWithParam<std::string> {};

TEST_P(SentencePieceModels, EqualTheLibrary) {
  const Tokenizer& tokenizer = opened("sentencepiece/" + GetParam() + ".model");
  const auto rows =
      read_jsonl(unpacked("tokenizers/sentencepiece/" + GetParam() + ".encode.jsonl"));
  ASSERT_EQ(rows.size(), 343U);
  for (const auto& row : rows) {
    EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>(), {.parse_special = false}),
              ids_of(row["ids"]))
        << row.dump();
    auto decoded = row["decoded"].get<std::string>();
    // The library writes unknown pieces as U+2047 between spaces, onset as they are spelled.
    const std::string unknown = " \u2047 ";
    for (auto at = decoded.find(unknown); at != std::string::npos; at = decoded.find(unknown)) {
      decoded.replace(at, unknown.size(), "<unk>");
    }
    EXPECT_EQ(tokenizer.decode(ids_of(row["ids"])), decoded) << row.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Made, SentencePieceModels, ::testing::Values("nmt", "phrases", "odd"),
                         [](const auto& row) { return row.param; });

// llama.cpp's own vectors: texts between marks, the ids of each on a line.
struct Vectors {
  const char* name;
  const char* vocabulary;
};

std::ostream& operator<<(std::ostream& out, const Vectors& vectors) { return out << vectors.name; }

class GgmlVectors : public ::testing::TestWithParam<Vectors> {};

TEST_P(GgmlVectors, EveryTextHasItsIds) {
  const std::string base = str_cat("tokenizers/ggml/ggml-vocab-", GetParam().name, ".gguf");
  const std::string input = read_file(unpacked(base + ".inp"));
  const auto lines = split(read_file(unpacked(base + ".out")), '\n');
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::size_t number = 0;
  for (std::size_t at = 0; at < input.size(); ++number) {
    const std::size_t end = input.find(mark, at);
    ASSERT_NE(end, std::string::npos);
    const std::string text = input.substr(at, end - at);
    at = end + mark.size();
    std::istringstream line(lines.at(number));
    const std::vector<TokenId> ids{std::istream_iterator<TokenId>(line), {}};
    EXPECT_EQ(opened(GetParam().vocabulary).encode(text), ids) << quote(text);
  }
  EXPECT_EQ(number, 46U);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, GgmlVectors,
                         ::testing::Values(Vectors{"gpt-2", "ggml/ggml-vocab-gpt-2.gguf"},
                                           Vectors{"llama-spm", "ggml/ggml-vocab-llama-spm.gguf"},
                                           Vectors{"phi-3", "ggml/ggml-vocab-phi-3.gguf"},
                                           Vectors{"llama-bpe", "llama3_1"},
                                           Vectors{"qwen2", "qwen3"}),
                         [](const auto& row) {
                           std::string name = row.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace onset::testing
