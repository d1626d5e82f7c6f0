// Tokenizers of GGUF files written as tokenizer.json and tokenizer_config.json and read again.
#include "onset/tokenizer/convert_gguf.h"

#include <algorithm>

#include "checkpoint/files.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

Tokenizer converted(const std::filesystem::path& gguf, const TemporaryFolder& folder) {
  const auto files = convert_gguf_tokenizer(gguf);
  if (!files) throw std::runtime_error("no tokenizer");
  static_cast<void>(folder.write("tokenizer.json", files->tokenizer.dump()));
  static_cast<void>(folder.write("tokenizer_config.json", files->tokenizer_config.dump()));
  if (!files->eos.is_null()) {
    static_cast<void>(
        folder.write("generation_config.json", OrderedJson{{"eos_token_id", files->eos}}.dump()));
  }
  return Tokenizer::open(folder.path());
}

// Texts of all fixtures: code, numbers, spaces, scripts, special tokens.
std::vector<std::string> texts() {
  std::vector<std::string> texts;
  for (const auto& row : read_jsonl(testing::data("tokenizers/smollm2.encode.jsonl"))) {
    texts.push_back(row["text"].get<std::string>());
  }
  const std::string input = read_file(unpacked("tokenizers/ggml/ggml-vocab-gpt-2.gguf.inp"));
  const std::string mark = "\n__ggml_vocab_test__\n";
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t end = input.find(mark, at);
    texts.push_back(input.substr(at, end - at));
    at = end + mark.size();
  }
  for (const char* text : {"<|im_start|>user\nhi<|im_end|>\n", "<s>a</s> b", "a <|endoftext|>  b",
                           "<|user|>\n x<|end|> y", " leading", "trailing ", "", " ", "<s>"}) {
    texts.emplace_back(text);
  }
  return texts;
}

void expect_alike(const Tokenizer& gguf, const Tokenizer& folder) {
  for (const std::string& text : texts()) {
    for (const bool add_special : {false, true}) {
      const auto ids = gguf.encode(text, {.add_special = add_special});
      EXPECT_EQ(folder.encode(text, {.add_special = add_special}), ids) << quote(text);
      EXPECT_EQ(folder.decode(ids), gguf.decode(ids)) << quote(text);
    }
  }
  EXPECT_EQ(folder.vocabulary_size(), gguf.vocabulary_size());
  EXPECT_EQ(folder.special().bos, gguf.special().bos);
  EXPECT_EQ(folder.special().eos, gguf.special().eos);
  EXPECT_EQ(folder.special().end_of_text, gguf.special().end_of_text);
  EXPECT_EQ(folder.special().add_bos, gguf.special().add_bos);
  EXPECT_EQ(folder.special().add_eos, gguf.special().add_eos);
  EXPECT_EQ(folder.chat_template(), gguf.chat_template());
  for (TokenId id = 0; id < gguf.vocabulary_size(); ++id) {
    ASSERT_EQ(folder.piece(id), gguf.piece(id)) << id;
    ASSERT_EQ(folder.is_special(id), gguf.is_special(id)) << id;
  }
}

class ConvertGguf : public ::testing::TestWithParam<const char*> {};

TEST_P(ConvertGguf, EncodesAsTheFileDoes) {
  const std::string relative = str_cat("ggml/ggml-vocab-", GetParam(), ".gguf");
  const TemporaryFolder folder;
  expect_alike(opened(relative), converted(unpacked("tokenizers/" + relative), folder));
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, ConvertGguf,
                         ::testing::Values("gpt-2", "llama-spm", "phi-3"), [](const auto& row) {
                           std::string name = row.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ConvertGgufDemo, EncodesAsTheFileDoes) {
  if (smollm2() == nullptr) GTEST_SKIP() << "the demonstration model is not there";
  const TemporaryFolder folder;
  const Tokenizer tokenizer = converted(demo_model(), folder);
  expect_alike(*smollm2(), tokenizer);
  // And as transformers' own tokenizer of the model does.
  for (const auto& row : read_jsonl(testing::data("tokenizers/smollm2.encode.jsonl"))) {
    EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>()), ids_of(row["ids"])) << row.dump();
  }
}

constexpr std::uint32_t type_u32 = 4;
constexpr std::uint32_t type_i32 = 5;
constexpr std::uint32_t type_string = 8;

// The GGUF that llama.cpp's converter would make of a byte-level tokenizer.json.
std::string gguf_of(const Json& json, const std::string& pre) {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  const auto set = [&](std::size_t id, const std::string& text, std::int32_t type) {
    if (tokens.size() <= id) tokens.resize(id + 1);
    types.resize(tokens.size(), 1);
    tokens[id] = text;
    types[id] = type;
  };
  for (const auto& item : json.at("model").at("vocab").items()) {
    set(item.value().get<std::size_t>(), item.key(), 1);
  }
  for (const Json& token : json.at("added_tokens")) {
    set(token.at("id").get<std::size_t>(), token.at("content").get<std::string>(),
        token.at("special").get<bool>() ? 3 : 4);
  }
  std::string token_bytes;
  std::string type_bytes;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    GgufBuilder::append_string(token_bytes, tokens[i]);
    append<std::int32_t>(type_bytes, types[i]);
  }
  std::string merge_bytes;
  const Json& merges = json.at("model").at("merges");
  for (const Json& merge : merges) {
    const bool halves = merge.is_array();
    GgufBuilder::append_string(
        merge_bytes, halves ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                            : merge.get<std::string>());
  }
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  builder.text("tokenizer.ggml.model", "gpt2");
  builder.text("tokenizer.ggml.pre", pre);
  builder.array("tokenizer.ggml.tokens", type_string, tokens.size(), token_bytes);
  builder.array("tokenizer.ggml.token_type", type_i32, types.size(), type_bytes);
  builder.array("tokenizer.ggml.merges", type_string, merges.size(), merge_bytes);
  return builder.build(0);
}

struct Rewritten {
  const char* family;
  const char* pre;
};

class ConvertRewritten : public ::testing::TestWithParam<Rewritten> {};

// To GGUF and back, the ids are those of the family's own tokenizer.
TEST_P(ConvertRewritten, GivesTheReferenceIds) {
  const std::string family = GetParam().family;
  const TemporaryFolder folder;
  const auto gguf = folder.write(
      "vocabulary.gguf",
      gguf_of(read_json(unpacked("tokenizers/" + family + "/tokenizer.json")), GetParam().pre));
  const TemporaryFolder written;
  const Tokenizer tokenizer = converted(gguf, written);
  for (const auto& row : read_jsonl(testing::data("tokenizers/" + family + ".encode.jsonl"))) {
    EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>()), ids_of(row["ids"])) << row.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ConvertRewritten,
                         ::testing::Values(Rewritten{"qwen3", "qwen2"},
                                           Rewritten{"llama3_1", "llama-bpe"},
                                           Rewritten{"deepseek_v3", "deepseek-v3"}),
                         [](const auto& row) { return row.param.family; });

// The first of a byte-level vocabulary: the bytes, then what each merge makes.
Json first_merges(const std::filesystem::path& tokenizer_json, std::size_t count) {
  const Json whole = read_json(tokenizer_json);
  Json part;
  for (const auto& item : whole.at("model").at("vocab").items()) {
    if (item.value() < 256 + count) part["model"]["vocab"][item.key()] = item.value();
  }
  const Json& merges = whole.at("model").at("merges");
  part["model"]["merges"] = Json::array();
  for (std::size_t i = 0; i < count; ++i) part["model"]["merges"].push_back(merges.at(i));
  part["added_tokens"] = Json::array();
  return part;
}

// Every known pre-tokenizer is written so that it splits as before.
TEST(ConvertGguf, WritesEveryPretokenizer) {
  const Json vocabulary = first_merges(unpacked("tokenizers/qwen3/tokenizer.json"), 3000);
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe", "dbrx", "deepseek-v3", "default",
                          "deepseek-llm", "deepseek-coder", "tekken"}) {
    const TemporaryFolder folder;
    const auto gguf = folder.write("v.gguf", gguf_of(vocabulary, pre));
    const TemporaryFolder written;
    const Tokenizer tokenizer = converted(gguf, written);
    const Tokenizer original = Tokenizer::open(gguf);
    for (const std::string& text : texts()) {
      ASSERT_EQ(tokenizer.encode(text), original.encode(text)) << pre << quote(text);
    }
  }
}

TEST(ConvertGguf, GivesNothingWhereTheFileHasNoTokenizer) {
  const TemporaryFolder folder;
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  builder.number("llama.block_count", type_u32, std::uint32_t{1});
  EXPECT_FALSE(convert_gguf_tokenizer(folder.write("x.gguf", builder.build(0))).has_value());
}

}  // namespace
}  // namespace onset::testing
