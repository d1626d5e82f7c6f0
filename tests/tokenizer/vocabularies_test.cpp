#include "tokenizer/vocabularies.h"

#include <map>

namespace onset::testing {

const Tokenizer& opened(const std::string& relative) {
  static std::map<std::string, Tokenizer> tokenizers;
  const auto found = tokenizers.find(relative);
  if (found != tokenizers.end()) return found->second;
  return tokenizers.emplace(relative, Tokenizer::open(unpacked("tokenizers/" + relative)))
      .first->second;
}

const Tokenizer& qwen3() { return opened("qwen3"); }
const Tokenizer& llama3() { return opened("llama3_1"); }
const Tokenizer& llama2() { return opened("llama2_spm"); }

const Tokenizer& llama2_new_prefix() {
  static const Tokenizer tokenizer = [] {
    const TemporaryFolder folder;
    std::filesystem::copy_file(unpacked("tokenizers/llama2_spm/tokenizer.model"),
                               folder.path() / "tokenizer.model");
    static_cast<void>(folder.write("tokenizer_config.json", R"({"legacy": false})"));
    return Tokenizer::open(folder.path());
  }();
  return tokenizer;
}

const Tokenizer* smollm2() {
  if (demo_model().empty()) return nullptr;
  static const Tokenizer tokenizer = Tokenizer::open(demo_model());
  return &tokenizer;
}

const Tokenizer* tokenizer_of(const std::string& family) {
  if (family == "smollm2") return smollm2();
  return family == "llama3_1_dated" ? &llama3() : &opened(family);
}

std::vector<TokenId> ids_of(const OrderedJson& array) { return array.get<std::vector<TokenId>>(); }

namespace {

TEST(Vocabularies, SayWhatTheyAre) {
  EXPECT_EQ(qwen3().description(),
            "BPE (byte level), pre-tokenizer qwen2, 151,643 pieces and 26 added");
  EXPECT_EQ(llama3().description(),
            "BPE (byte level), pre-tokenizer llama3, 128,000 pieces and 256 added");
  EXPECT_EQ(opened("gpt2").description(),
            "BPE (byte level), pre-tokenizer gpt2, 50,256 pieces and 1 added");
  EXPECT_EQ(llama2().description(), "BPE (SentencePiece), 31,997 pieces and 3 added");
  EXPECT_EQ(qwen3().vocabulary_size(), 151669);
  EXPECT_EQ(llama3().vocabulary_size(), 128256);
  EXPECT_EQ(opened("deepseek_v3").vocabulary_size(), 128815);
  EXPECT_EQ(opened("gpt2").vocabulary_size(), 50257);
  EXPECT_EQ(llama2().vocabulary_size(), 32000);
  if (smollm2() == nullptr) GTEST_SKIP() << "the demonstration model is not there";
  EXPECT_EQ(smollm2()->description(),
            "BPE (byte level), pre-tokenizer smollm, 49,135 pieces and 17 added");
  EXPECT_EQ(smollm2()->vocabulary_size(), 49152);
}

}  // namespace
}  // namespace onset::testing
