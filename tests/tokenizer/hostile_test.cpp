// Files that are broken, by accident or on purpose: an input error that names the file and the
// thing, never a crash or gigabytes of memory.
#include <functional>
#include <random>

#include "checkpoint/files.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

struct Damage {
  const char* what;  // the message holds it
  std::function<void(Json&)> apply;
};

TEST(HostileJson, TheBrokenPartIsNamed) {
  const std::vector<Damage> damages = {
      {"model", [](Json& t) { t.erase("model"); }},
      {"model", [](Json& t) { t["model"] = 3; }},
      {"model", [](Json& t) { t = Json::array({t}); }},
      {"\"vocab\"", [](Json& t) { t["model"].erase("vocab"); }},
      {"\"vocab\"",
       [](Json& t) {
         t["model"]["vocab"] = Json::array({Json::array({"a", 1})});
       }},
      {"Unigram", [](Json& t) { t["model"]["type"] = "Unigram"; }},
      {"model.vocab: id 2147483648", [](Json& t) { t["model"]["vocab"]["zz"] = 2147483648; }},
      {"model.vocab: id -1", [](Json& t) { t["model"]["vocab"]["zz"] = -1; }},
      {"model.vocab", [](Json& t) { t["model"]["vocab"]["zz"] = "7"; }},
      {"model.vocab", [](Json& t) { t["model"]["vocab"]["zz"] = 1.5; }},
      {"model.vocab", [](Json& t) { t["model"]["vocab"]["zz"] = Json::array({1}); }},
      {"model.vocab: id 65 stands twice", [](Json& t) { t["model"]["vocab"]["zz"] = 65; }},
      {"merge 1: \"yy\"", [](Json& t) { t["model"]["merges"].push_back("yy a"); }},
      {"merge 1: \"xy\"", [](Json& t) { t["model"]["merges"].push_back("x y"); }},
      {"model.merges: entry 1", [](Json& t) { t["model"]["merges"].push_back("xy"); }},
      {"model.merges: entry 1", [](Json& t) { t["model"]["merges"].push_back("x y z"); }},
      {"model.merges: entry 1", [](Json& t) { t["model"]["merges"].push_back(7); }},
      {"model.merges: entry 1",
       [](Json& t) {
         t["model"]["merges"].push_back({"a", "b", "c"});
       }},
      {"model.merges: entry 1", [](Json& t) { t["model"]["merges"].push_back(Json::object()); }},
      {"model.merges should be an array", [](Json& t) { t["model"]["merges"] = nullptr; }},
      {"model.merges should be an array", [](Json& t) { t["model"]["merges"] = 5; }},
      {"model.merges should be an array", [](Json& t) { t["model"]["merges"] = "a b"; }},
      {"model.merges should be an array", [](Json& t) { t["model"]["merges"] = Json::object(); }},
      {"unk_token", [](Json& t) { t["model"]["unk_token"] = "<none>"; }},
      {"unk_token", [](Json& t) { t["model"]["unk_token"] = 7; }},
      {"dropout", [](Json& t) { t["model"]["dropout"] = 0.1; }},
      {"end_of_word_suffix", [](Json& t) { t["model"]["end_of_word_suffix"] = "</w>"; }},
      {"normalizer: type \"BertNormalizer\"",
       [](Json& t) {
         t["normalizer"] = {{"type", "BertNormalizer"}};
       }},
      {"normalizer: has no \"prepend\"",
       [](Json& t) {
         t["normalizer"] = {{"type", "Prepend"}};
       }},
      {"normalizer: has no \"pattern\"",
       [](Json& t) {
         t["normalizer"] = {{"type", "Replace"}, {"content", "x"}};
       }},
      {"normalizer: the pattern should be a String or a Regex",
       [](Json& t) {
         t["normalizer"] = {{"type", "Replace"}, {"pattern", Json::object()}};
       }},
      {"normalizer: the regex does not compile",
       [](Json& t) {
         t["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "("}}}, {"content", ""}};
       }},
      {"normalizer", [](Json& t) { t["normalizer"] = "NFC"; }},
      {"normalizer",
       [](Json& t) {
         t["normalizer"] = {{"type", "Sequence"}};
       }},
      {"decoder: \"ByteLevel\" without", [](Json& t) { t.erase("pre_tokenizer"); }},
      {"decoder: \"Fuse\" beside",
       [](Json& t) {
         t["decoder"] = {{"type", "Fuse"}};
       }},
      {"pre_tokenizer: type \"UnicodeScripts\"",
       [](Json& t) {
         t["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
       }},
      {"pre_tokenizer: \"replacement\" should be one character",
       [](Json& t) {
         t["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "ab"}};
       }},
      {"pre_tokenizer: prepend_scheme \"last\"",
       [](Json& t) {
         t["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "last"}};
       }},
      {"pre_tokenizer: \"Digits\" behind ByteLevel",
       [](Json& t) {
         const Json digits = {{"type", "Digits"}};
         t["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", {t["pre_tokenizer"], digits}}};
       }},
      {"pre_tokenizer: the regex does not compile",
       [](Json& t) { t["pre_tokenizer"] = split_by("("); }},
      {"behavior",
       [](Json& t) {
         t["pre_tokenizer"] = split_by("a");
         t["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Shuffled";
       }},
      {"pattern",
       [](Json& t) {
         t["pre_tokenizer"] = split_by("a");
         t["pre_tokenizer"]["pretokenizers"][0].erase("pattern");
       }},
      {"decoder: type \"WordPiece\"",
       [](Json& t) {
         t["decoder"] = {{"type", "WordPiece"}};
       }},
      {"post_processor: type \"Odd\"",
       [](Json& t) {
         t["post_processor"] = {{"type", "Odd"}};
       }},
      {"single",
       [](Json& t) {
         t["post_processor"] = {{"type", "TemplateProcessing"}};
       }},
      {"special token \"<s>\" has no ids",
       [](Json& t) {
         t["post_processor"] = {{"type", "TemplateProcessing"},
                                {"single", {{{"SpecialToken", {{"id", "<s>"}}}}}}};
       }},
      {"id 999999 is not in the vocabulary",
       [](Json& t) {
         t["post_processor"] = {
             {"type", "BertProcessing"}, {"cls", {"<s>", 999999}}, {"sep", {"</s>", 1}}};
       }},
      {"added_tokens", [](Json& t) { t["added_tokens"] = 1; }},
      {"added_tokens", [](Json& t) { t["added_tokens"] = Json::array({1}); }},
      {"added_tokens",
       [](Json& t) {
         t["added_tokens"] = {{{"content", "x"}}};
       }},
      {"id 2147483648",
       [](Json& t) {
         t["added_tokens"] = {added_token("<x>", 1)};
         t["added_tokens"][0]["id"] = 2147483648;
       }},
      {"\"<x>\" has id 65", [](Json& t) { t["added_tokens"] = {added_token("<x>", 65)}; }},
      {"\"a\" has id 400", [](Json& t) { t["added_tokens"] = {added_token("a", 400)}; }},
      {"special",
       [](Json& t) {
         t["added_tokens"] = {added_token("<x>", 400)};
         t["added_tokens"][0]["special"] = "yes";
       }},
  };
  for (const auto& damage : damages) {
    Json tokenizer = small_tokenizer({{"a", "b"}});
    damage.apply(tokenizer);
    const auto message = error_of_json(tokenizer);
    EXPECT_NE(message.find(damage.what), std::string::npos) << damage.what << " / " << message;
    EXPECT_NE(message.find("tokenizer.json"), std::string::npos) << message;
  }
}

TEST(HostileJson, BrokenConfigurationsAreNamed) {
  const Json base = small_tokenizer({});
  EXPECT_NE(error_of_json(base, {{"bos_token", "<none>"}}).find("tokenizer_config.json: bos_token"),
            std::string::npos);
  EXPECT_NE(error_of_json(base, {{"add_bos_token", "yes"}}).find("add_bos_token"),
            std::string::npos);
  EXPECT_NE(error_of_json(base, Json::array({1})).find("should be an object"), std::string::npos);
  EXPECT_NE(error_of_json(base, {{"chat_template", 3}}).find("chat_template"), std::string::npos);
}

TEST(HostileJson, DeepNestingIsAnError) {
  const TemporaryFolder folder;
  std::string deep = R"({"model": )" + std::string(100000, '[');
  static_cast<void>(folder.write("tokenizer.json", deep));
  EXPECT_NE(error_of([&] {
              return Tokenizer::open(folder.path()).vocabulary_size();
            }).find("nested too deeply"),
            std::string::npos);
}

TEST(HostileJson, MissingFilesAreNamed) {
  const TemporaryFolder folder;
  EXPECT_NE(error_of([&] {
              return Tokenizer::open(folder.path()).vocabulary_size();
            }).find("has no tokenizer.json"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              return Tokenizer::open(folder.path() / "absent.json").vocabulary_size();
            }).find("absent.json"),
            std::string::npos);
}

// Opens or throws an onset::Error; what opens can be used.
void open_any(const std::filesystem::path& path) {
  try {
    const Tokenizer tokenizer = Tokenizer::open(path);
    const auto ids = tokenizer.encode("ab <x> 12\u00e9");
    static_cast<void>(tokenizer.decode(ids));
  } catch (const Error&) {
  }
}

std::string damaged(std::string bytes, std::mt19937& random) {
  for (std::size_t i = random() % 3 + 1; i > 0; --i) {
    const std::size_t at = random() % bytes.size();
    const auto way = random() % 4;
    if (way == 0) bytes[at] = static_cast<char>(random());
    if (way == 1) bytes.erase(at, random() % 9 + 1);
    if (way == 2) bytes.insert(at, 1, "[]{}\",:0-9e\\"[random() % 12]);
    if (way == 3) bytes.resize(std::max<std::size_t>(at, 1));
  }
  return bytes.empty() ? "x" : bytes;
}

TEST(HostileJson, RandomDamageGivesErrorsOnly) {
  Json tokenizer = small_tokenizer({{"a", "b"}});
  tokenizer["added_tokens"] = {added_token("<x>", 300)};
  const std::string bytes = tokenizer.dump();
  const TemporaryFolder folder;
  std::mt19937 random(31);
  for (int round = 0; round < 600; ++round) {
    open_any(folder.write("tokenizer.json", damaged(bytes, random)));
  }
}

constexpr std::uint32_t gguf_string = 8;
constexpr std::uint32_t gguf_u32 = 4;
constexpr std::uint32_t gguf_i32 = 5;
constexpr std::uint32_t gguf_bool = 7;

std::string strings(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const auto& text : texts) GgufBuilder::append_string(bytes, text);
  return bytes;
}

// The bytes, "ab", and a control token "<x>".
GgufBuilder small_gguf(const std::string& pre, const std::vector<std::string>& merges) {
  std::vector<std::string> tokens;
  std::string types;
  for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back(spelled_byte(byte));
  tokens.emplace_back("ab");
  tokens.emplace_back("<x>");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    append<std::int32_t>(types, i == 257 ? 3 : 1);
  }
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "gpt2");
  if (!pre.empty()) builder.text("tokenizer.ggml.pre", pre);
  builder.array("tokenizer.ggml.tokens", gguf_string, tokens.size(), strings(tokens));
  builder.array("tokenizer.ggml.token_type", gguf_i32, tokens.size(), types);
  builder.array("tokenizer.ggml.merges", gguf_string, merges.size(), strings(merges));
  return builder;
}

Tokenizer open_gguf(const GgufBuilder& builder) {
  const TemporaryFolder folder;
  return Tokenizer::open(folder.write("model.gguf", builder.build(0)));
}

using Ids = std::vector<TokenId>;

TEST(Gguf, MetadataMakesTheTokenizer) {
  GgufBuilder builder = small_gguf("gpt-2", {"a b"});
  builder.number<std::uint32_t>("tokenizer.ggml.bos_token_id", gguf_u32, 257);
  builder.number<std::uint32_t>("tokenizer.ggml.eos_token_id", gguf_u32, 257);
  builder.number<std::uint32_t>("tokenizer.ggml.eot_token_id", gguf_u32, 65);
  builder.number<std::uint8_t>("tokenizer.ggml.add_bos_token", gguf_bool, 1);
  builder.text("tokenizer.chat_template", "t");
  const Tokenizer tokenizer = open_gguf(builder);
  EXPECT_EQ(tokenizer.encode("ab<x>", {.parse_special = true, .add_special = true}),
            (Ids{257, 256, 257}));
  EXPECT_EQ(tokenizer.special().eos, (Ids{257, 65}));
  EXPECT_TRUE(tokenizer.is_special(257));
  EXPECT_EQ(tokenizer.chat_template(), "t");
}

TEST(Gguf, Llama3AddsBosUnlessTheFileSaysOtherwise) {
  GgufBuilder builder = small_gguf("llama-bpe", {"a b"});
  builder.number<std::uint32_t>("tokenizer.ggml.bos_token_id", gguf_u32, 257);
  EXPECT_TRUE(open_gguf(builder).special().add_bos);
  builder.number<std::uint8_t>("tokenizer.ggml.add_bos_token", gguf_bool, 0);
  EXPECT_FALSE(open_gguf(builder).special().add_bos);
}

// llama.cpp's rule for "default": punctuation apart, then GPT-2's, then digits by three.
TEST(Gguf, AMissingPretokenizerIsTheDefaultOne) {
  for (const char* pre : {"", "default"}) {
    const Tokenizer tokenizer = open_gguf(small_gguf(pre, {"a b"}));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab, 12345 ab!")), "ab, 12345 ab!");
  }
}

TEST(Gguf, WhatIsNotKnownIsNamed) {
  const auto pre = error_of([] { return open_gguf(small_gguf("odd", {})).vocabulary_size(); });
  EXPECT_NE(pre.find("\"odd\""), std::string::npos) << pre;
  EXPECT_NE(pre.find("llama-bpe"), std::string::npos) << pre;
  for (const char* model : {"none", "no_vocab"}) {
    GgufBuilder builder;
    builder.text("tokenizer.ggml.model", model);
    const auto none = error_of([&] { return open_gguf(builder).vocabulary_size(); });
    EXPECT_NE(none.find("has no tokenizer"), std::string::npos) << none;
    EXPECT_NE(none.find("--ids"), std::string::npos) << none;
  }
  GgufBuilder bert;
  bert.text("tokenizer.ggml.model", "bert");
  EXPECT_NE(error_of([&] { return open_gguf(bert).vocabulary_size(); }).find("\"bert\""),
            std::string::npos);
}

TEST(Gguf, BrokenPartsAreNamed) {
  const auto error = [](const GgufBuilder& builder) {
    return error_of([&] { return open_gguf(builder).vocabulary_size(); });
  };
  EXPECT_NE(error(small_gguf("gpt-2", {"a zz"})).find("merge 0: \"zz\""), std::string::npos);
  EXPECT_NE(error(small_gguf("gpt-2", {"ab"})).find("tokenizer.ggml.merges"), std::string::npos);
  EXPECT_NE(error(small_gguf("gpt-2", {""})).find("tokenizer.ggml.merges"), std::string::npos);
  EXPECT_NE(error(small_gguf("gpt-2", {"\xFF \xFE"})).find("tokenizer.ggml.merges"),
            std::string::npos);
  GgufBuilder bos = small_gguf("gpt-2", {});
  bos.number<std::uint32_t>("tokenizer.ggml.bos_token_id", gguf_u32, 999);
  EXPECT_NE(error(bos).find("bos_token_id is 999"), std::string::npos);
  GgufBuilder no_tokens;
  no_tokens.text("tokenizer.ggml.model", "gpt2");
  EXPECT_NE(error(no_tokens).find("tokenizer.ggml.tokens"), std::string::npos);
  GgufBuilder types;
  types.text("tokenizer.ggml.model", "gpt2");
  types.array("tokenizer.ggml.tokens", gguf_string, 1, strings({"a"}));
  types.array("tokenizer.ggml.token_type", gguf_i32, 2, std::string(8, '\1'));
  EXPECT_NE(error(types).find("token_type has 2"), std::string::npos);
}

TEST(Gguf, RandomDamageGivesErrorsOnly) {
  GgufBuilder builder = small_gguf("smollm", {"a b"});
  builder.number<std::uint32_t>("tokenizer.ggml.eos_token_id", gguf_u32, 257);
  const std::string bytes = builder.build(0);
  const TemporaryFolder folder;
  std::mt19937 random(37);
  for (int round = 0; round < 600; ++round) {
    open_any(folder.write("model.gguf", damaged(bytes, random)));
  }
}

}  // namespace
}  // namespace onset::testing
