// tokenizer.model and its kind in GGUF, broken by accident or on purpose: an input error that names
// the file and the thing, never a crash, gigabytes of memory or minutes of work.
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "checkpoint/files.h"
#include "onset/base/error.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

// A writer of protobuf messages.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field(unsigned number, std::uint64_t value) {
  return varint(std::uint64_t{number} << 3) + varint(value);
}
std::string field(unsigned number, const std::string& bytes) {
  return varint((std::uint64_t{number} << 3) | 2) + varint(bytes.size()) + bytes;
}
std::string field(unsigned number, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint((std::uint64_t{number} << 3) | 5) + bytes;
}

std::string piece(const std::string& text, float score, std::uint64_t type = 1) {
  return field(1, field(1, text) + field(2, score) + field(3, type));
}

const std::string bpe = field(2, field(3, std::uint64_t{2}));
const std::string plain_rule = field(3, field(4, std::uint64_t{0}));

// <unk>, <s>, </s>, the space and a few letters.
std::string small_pieces() {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581", -1) +
         piece("a", -2) + piece("b", -3) + piece("ab", -4) + piece("\u2581ab", -5);
}

Tokenizer open_model(const std::string& bytes) {
  const TemporaryFolder folder;
  return Tokenizer::open(folder.write("tokenizer.model", bytes));
}

std::string error_of_model(const std::string& bytes) {
  auto message = error_of([&] { return open_model(bytes).vocabulary_size(); });
  EXPECT_NE(message.find("tokenizer.model"), std::string::npos) << message;
  return message;
}

using Ids = std::vector<TokenId>;

TEST(HostileModel, TheSmallModelWorks) {
  const Tokenizer tokenizer = open_model(small_pieces() + bpe + plain_rule);
  EXPECT_EQ(tokenizer.encode("ab  b", {.parse_special = true, .add_special = true}),
            (Ids{1, 7, 3, 3, 5}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab  b")), "ab  b");
  EXPECT_EQ(tokenizer.encode("\u00e9\u00e8a"), (Ids{3, 0, 4}));
  EXPECT_EQ(tokenizer.special().bos, 1);
  EXPECT_EQ(tokenizer.special().eos, Ids{2});
}

TEST(HostileModel, OtherKindsOfModelsAreRefusedByName) {
  const auto of_type = [](std::uint64_t type) {
    return error_of_model(small_pieces() + field(2, field(3, type)));
  };
  EXPECT_NE(of_type(1).find("Unigram"), std::string::npos);
  EXPECT_NE(of_type(3).find("Word"), std::string::npos);
  EXPECT_NE(of_type(4).find("Char"), std::string::npos);
  EXPECT_NE(of_type(99).find("99"), std::string::npos);
  // Without a trainer_spec the type is SentencePiece's default.
  EXPECT_NE(error_of_model(small_pieces()).find("Unigram"), std::string::npos);
  EXPECT_NE(error_of_model(small_pieces() +
                           field(2, field(3, std::uint64_t{2}) + field(24, std::uint64_t{1})))
                .find("treat_whitespace_as_suffix"),
            std::string::npos);
  EXPECT_NE(error_of_model(small_pieces() + bpe + field(5, field(2, std::string("x"))))
                .find("denormalizer_spec"),
            std::string::npos);
}

TEST(HostileModel, BrokenPiecesAreNamed) {
  const auto with = [](const std::string& more) {
    return error_of_model(small_pieces() + more + bpe);
  };
  EXPECT_NE(with(piece("ab", -9)).find("piece 6, \"ab\", stands twice"), std::string::npos);
  EXPECT_NE(with(piece("", -9)).find("piece 8 is empty"), std::string::npos);
  EXPECT_NE(with(piece("\xFF", -9)).find("piece 8 is not valid UTF-8"), std::string::npos);
  EXPECT_NE(with(piece("c", NAN)).find("is not a number"), std::string::npos);
  EXPECT_NE(with(piece("c", 0, 7)).find("unknown type 7"), std::string::npos);
  EXPECT_NE(with(piece("c", 0, std::uint64_t{1} << 40)).find("unknown type 0"), std::string::npos);
  EXPECT_NE(with(piece(std::string(2000, 'a'), 0)).find("2000 bytes"), std::string::npos);
  EXPECT_NE(error_of_model(bpe).find("has no pieces"), std::string::npos);
}

TEST(HostileModel, BrokenMessagesAreNamed) {
  for (const std::string& bytes :
       {std::string("\x0a"), std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        std::string("\x08") + std::string(11, '\xff'), std::string("\x0b"), std::string("\x00", 1),
        std::string("\x0d\x01"), std::string("\x09\x01\x02"), std::string("\x07"),
        field(1, std::string("\x0a\x05")), field(1, field(1, std::uint64_t{3})),
        field(1, field(2, std::uint64_t{3})), field(2, field(3, std::string("x")))}) {
    EXPECT_NE(error_of_model(bytes).find("is not a protobuf message"), std::string::npos);
  }
  EXPECT_FALSE(error_of_model("").empty());
  EXPECT_FALSE(error_of_model("IQ== 0\nIg== 1\n").empty());  // tiktoken's format
}

TEST(HostileModel, BrokenTablesOfCharactersAreNamed) {
  const auto with = [](const std::string& table) {
    return small_pieces() + bpe + field(3, field(2, table));
  };
  const std::string long_trie("\xff\xff\xff\x7f", 4);
  EXPECT_NE(error_of_model(with("x")).find("cut off"), std::string::npos);
  EXPECT_NE(error_of_model(with(long_trie + "xxxx")).find("trie of"), std::string::npos);
  EXPECT_NE(error_of_model(with(std::string("\4\0\0\0xxxx", 8))).find("cut off"),
            std::string::npos);
  // Units that lead outside the trie, or to no result, find nothing.
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::string table("\0\4\0\0", 4);
    for (int i = 0; i < 1024; ++i) table += static_cast<char>(random());
    table += std::string("a\0b\0", 4);
    static_cast<void>(open_model(with(table)).encode("ab \u00e9 any text \u4e2d\u6587"));
  }
}

TEST(HostileModel, RandomDamageGivesErrorsOnly) {
  const std::string bytes = small_pieces() + piece("<0x41>", 0, 6) + piece("ba", -7, 5) +
                            piece("xyz", 0, 4) + bpe + plain_rule;
  std::mt19937 random(41);
  for (int round = 0; round < 800; ++round) {
    std::string damaged = bytes;
    for (auto i = random() % 3 + 1; i > 0; --i) {
      const std::size_t at = random() % damaged.size();
      if (random() % 3 == 0) {
        damaged.resize(std::max<std::size_t>(at, 1));
      } else {
        damaged[at] = static_cast<char>(random());
      }
    }
    try {
      const Tokenizer tokenizer = open_model(damaged);
      static_cast<void>(tokenizer.decode(tokenizer.encode("ab ba xyz <s> \u00e9")));
    } catch (const Error&) {
    }
  }
}

// Work must not grow with the square of a text or of a file.
TEST(HostileModel, LongTextsAndPiecesTakeLittleTime) {
  std::string pieces = small_pieces();
  std::string run = "a";
  for (float score = -10; run.size() < 1024; score -= 1) {
    run += run;
    pieces += piece(run, score);
  }
  for (int i = 0; i < 40; ++i)
    pieces += piece(std::string(static_cast<std::size_t>(900 + i), 'b'), -99);
  const auto start = std::chrono::steady_clock::now();
  const Tokenizer tokenizer = open_model(pieces + bpe + plain_rule);
  const std::string text(std::size_t{1} << 19, 'a');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(std::string(1 << 19, 'b'))).size(),
            std::size_t{1} << 19);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  std::string unused = small_pieces();
  for (int i = 0; i < 40; ++i)
    unused += piece(std::string(static_cast<std::size_t>(900 + i), 'b'), -9, 5);
  EXPECT_NE(error_of_model(unused + bpe).find("unused"), std::string::npos);
}

// The pieces of small_pieces() as a GGUF of kind llama.
GgufBuilder small_gguf(std::size_t scores_count = 8) {
  constexpr std::uint32_t gguf_string = 8;
  constexpr std::uint32_t gguf_i32 = 5;
  constexpr std::uint32_t gguf_f32 = 6;
  const std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "\u2581",
                                           "a",     "b",   "ab",   "\u2581ab"};
  std::string strings;
  std::string scores;
  std::string types;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    GgufBuilder::append_string(strings, tokens[i]);
    append<std::int32_t>(types, i == 0 ? 2 : i < 3 ? 3 : 1);
  }
  for (std::size_t i = 0; i < scores_count; ++i) append<float>(scores, -static_cast<float>(i));
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "llama");
  builder.array("tokenizer.ggml.tokens", gguf_string, tokens.size(), strings);
  if (scores_count > 0) builder.array("tokenizer.ggml.scores", gguf_f32, scores_count, scores);
  builder.array("tokenizer.ggml.token_type", gguf_i32, tokens.size(), types);
  return builder;
}

Tokenizer open_gguf(const GgufBuilder& builder) {
  const TemporaryFolder folder;
  return Tokenizer::open(folder.write("model.gguf", builder.build(0)));
}

TEST(GgufLlama, MetadataMakesTheTokenizer) {
  constexpr std::uint32_t gguf_u32 = 4;
  constexpr std::uint32_t gguf_bool = 7;
  GgufBuilder builder = small_gguf();
  builder.number<std::uint32_t>("tokenizer.ggml.bos_token_id", gguf_u32, 1);
  const EncodeOptions special{.parse_special = true, .add_special = true};
  EXPECT_EQ(open_gguf(builder).encode("ab<s>ab", special), (Ids{1, 7, 1, 7}));
  builder.number<std::uint8_t>("tokenizer.ggml.add_space_prefix", gguf_bool, 0);
  builder.number<std::uint8_t>("tokenizer.ggml.add_bos_token", gguf_bool, 0);
  const Tokenizer bare = open_gguf(builder);
  EXPECT_EQ(bare.encode("ab<s>ab", special), (Ids{6, 1, 6}));
  EXPECT_EQ(bare.decode(Ids{7, 6}), " abab");
}

TEST(GgufLlama, BrokenScoresAreNamed) {
  const auto error = [](const GgufBuilder& builder) {
    return error_of([&] { return open_gguf(builder).vocabulary_size(); });
  };
  EXPECT_NE(error(small_gguf(3)).find("tokenizer.ggml.scores has 3"), std::string::npos);
  EXPECT_NE(error(small_gguf(0)).find("tokenizer.ggml.scores"), std::string::npos);
}

TEST(VocabAndMerges, BrokenFilesAreNamed) {
  const auto error = [](const std::string& vocab, const std::string& merges) {
    const TemporaryFolder folder;
    static_cast<void>(folder.write("vocab.json", vocab));
    if (merges != "-") static_cast<void>(folder.write("merges.txt", merges));
    return error_of([&] { return Tokenizer::open(folder.path()).vocabulary_size(); });
  };
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2})";
  EXPECT_NE(error(vocab, "-").find("has vocab.json but no merges.txt"), std::string::npos);
  EXPECT_NE(error("[1]", "").find("should be an object"), std::string::npos);
  EXPECT_NE(error("{", "").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error(R"({"a": -1})", "").find("id -1"), std::string::npos);
  EXPECT_NE(error(R"({"a": 18446744073709551615})", "").find("id 18446744073709551615"),
            std::string::npos);
  EXPECT_NE(error(R"({"a": "0"})", "").find("should be an integer"), std::string::npos);
  EXPECT_NE(error(R"({"a": 0, "b": 0})", "").find("id 0 stands twice"), std::string::npos);
  EXPECT_NE(error(vocab, "#version: 0.2\na b\nab").find("line 3"), std::string::npos);
  EXPECT_NE(error(vocab, "a b c").find("line 1"), std::string::npos);
  EXPECT_NE(error(vocab, "b a").find("merge 0: \"ba\""), std::string::npos);
  EXPECT_NE(error(vocab, "a \xFF").find("not valid UTF-8"), std::string::npos);
}

TEST(VocabAndMerges, TheClassOfTheTokenizerSaysHowTextsAreSplit) {
  const auto open = [](const std::string& config) {
    const TemporaryFolder folder;
    static_cast<void>(folder.write("vocab.json", R"({"1": 0, "11": 1, "\u0120": 2})"));
    static_cast<void>(folder.write("merges.txt", "1 1"));
    static_cast<void>(folder.write("tokenizer_config.json", config));
    return Tokenizer::open(folder.path());
  };
  EXPECT_EQ(open("{}").encode("11"), Ids{1});
  EXPECT_EQ(open(R"({"add_prefix_space": true})").encode("11"), (Ids{2, 1}));
  EXPECT_EQ(open(R"({"tokenizer_class": "Qwen2Tokenizer"})").encode("11"), (Ids{0, 0}));
  const auto message =
      error_of([&] { return open(R"({"tokenizer_class": "CLIPTokenizer"})").vocabulary_size(); });
  EXPECT_NE(message.find("CLIPTokenizer"), std::string::npos) << message;
}

TEST(VocabAndMerges, BothNamesOfTheFilesAreKnown) {
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})";
  for (const auto& [first, second] :
       {std::pair("vocab.json", "merges.txt"), std::pair("encoder.json", "vocab.bpe")}) {
    const TemporaryFolder folder;
    static_cast<void>(folder.write(first, vocab));
    static_cast<void>(folder.write(second, "#version: 0.2\r\na b\r\n"));
    for (const auto& path : {folder.path(), folder.path() / first, folder.path() / second}) {
      const Tokenizer tokenizer = Tokenizer::open(path);
      EXPECT_EQ(tokenizer.encode("ab<|endoftext|>b"), (Ids{2, 3, 1}));
      EXPECT_EQ(tokenizer.special().eos, Ids{3});
      EXPECT_FALSE(tokenizer.special().add_bos);
    }
  }
}

}  // namespace
}  // namespace onset::testing
