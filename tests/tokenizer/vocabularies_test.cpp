#include "tokenizer/vocabularies.h"

namespace onset::testing {

const Tokenizer& qwen3() {
  static const Tokenizer tokenizer = Tokenizer::open(unpacked("tokenizers/qwen3"));
  return tokenizer;
}

const Tokenizer& llama3() {
  static const Tokenizer tokenizer = Tokenizer::open(unpacked("tokenizers/llama3_1"));
  return tokenizer;
}

const Tokenizer* smollm2() {
  if (demo_model().empty()) return nullptr;
  static const Tokenizer tokenizer = Tokenizer::open(demo_model());
  return &tokenizer;
}

const Tokenizer* tokenizer_of(const std::string& family) {
  if (family == "qwen3") return &qwen3();
  if (family.starts_with("llama3_1")) return &llama3();
  return smollm2();
}

std::vector<TokenId> ids_of(const OrderedJson& array) { return array.get<std::vector<TokenId>>(); }

namespace {

TEST(Vocabularies, SayWhatTheyAre) {
  EXPECT_EQ(qwen3().description(),
            "BPE (byte level), pre-tokenizer qwen2, 151,643 pieces and 26 added");
  EXPECT_EQ(llama3().description(),
            "BPE (byte level), pre-tokenizer llama3, 128,000 pieces and 256 added");
  EXPECT_EQ(qwen3().vocabulary_size(), 151669);
  EXPECT_EQ(llama3().vocabulary_size(), 128256);
  if (smollm2() == nullptr) GTEST_SKIP() << "the demonstration model is not there";
  EXPECT_EQ(smollm2()->description(),
            "BPE (byte level), pre-tokenizer smollm, 49,135 pieces and 17 added");
  EXPECT_EQ(smollm2()->vocabulary_size(), 49152);
}

}  // namespace
}  // namespace onset::testing
