// Every line of the fixtures that the reference tokenizers made.
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
  }
  const Tokenizer* tokenizer = nullptr;
  std::vector<OrderedJson> rows;
};

TEST_P(Fixtures, EncodeGivesTheReferenceIds) {
  for (const auto& row : rows) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text), ids_of(row["ids"])) << row.dump();
  }
}

TEST_P(Fixtures, AddSpecialAddsWhatTheConfigurationAdds) {
  for (const auto& row : rows) {
    const auto text = row["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text, {.add_special = true}), ids_of(row["ids_special"]))
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
      EXPECT_EQ(tokenizer->find(tokenizer->piece(id)), id);
    }
    // Lines that lost bytes on the way decode with U+FFFD in their place.
    if (bytes == row["text"].get<std::string>()) {
      EXPECT_EQ(bytes, row["decoded"].get<std::string>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Fixtures, ::testing::Values("qwen3", "llama3_1", "smollm2"),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace onset::testing
