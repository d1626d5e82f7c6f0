#include "onset/tokenizer/tokenizer.h"

#include <random>

#include "tokenizer/small_tokenizer.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

using Ids = std::vector<TokenId>;

// CASES row 3: a tokenizer without BOS adds none, and says so.
TEST(Tokenizer, WithoutBosNothingIsAdded) {
  EXPECT_EQ(qwen3().special().bos, std::nullopt);
  EXPECT_FALSE(qwen3().special().add_bos);
  EXPECT_FALSE(qwen3().special().add_eos);
  EXPECT_EQ(qwen3().encode("hi", {.parse_special = true, .add_special = true}),
            qwen3().encode("hi"));
  EXPECT_EQ(qwen3().encode("hi").size(), 1U);
  EXPECT_EQ(qwen3().encode(""), Ids{});
}

TEST(Tokenizer, PoliciesAreThoseOfTheConfigurations) {
  EXPECT_EQ(qwen3().special().eos, Ids{151645});
  EXPECT_EQ(llama3().special().bos, 128000);
  EXPECT_TRUE(llama3().special().add_bos);
  EXPECT_EQ(llama3().special().eos, Ids{128009});
  EXPECT_EQ(llama3().encode("", {.parse_special = true, .add_special = true}), Ids{128000});
  if (smollm2() == nullptr) GTEST_SKIP() << "the demonstration model is not there";
  EXPECT_EQ(smollm2()->special().bos, 1);
  EXPECT_FALSE(smollm2()->special().add_bos);
  EXPECT_EQ(smollm2()->special().eos, Ids{2});
}

// CASES row 15; ids of tokenizers 0.23.3, for SmolLM2 with its digit pass.
TEST(Tokenizer, PretokenizersKeepDigitsLinesEmojiAndNbspApart) {
  const std::vector<std::string> texts = {"x->12345 it's\r\n\n  a", "(x):\n",
                                          "\U0001F44D\U0001F3FD a \U0001F469\u200D\U0001F467",
                                          "a\u00A0b \u00A0 c"};
  const std::vector<Ids> qwen3_ids = {{87, 405, 16, 17, 18, 19, 20, 432, 594, 80823, 220, 264},
                                      {2075, 982},
                                      {144349, 145375, 264, 61804, 102, 378, 235, 145665},
                                      {64, 4102, 65, 17091, 272}};
  const std::vector<Ids> llama3_ids = {
      {87, 405, 4513, 1774, 433, 596, 81923, 220, 264},
      {2120, 997},
      {9468, 239, 235, 9468, 237, 121, 264, 62904, 102, 102470, 9468, 239, 100},
      {64, 115648, 17529, 272}};
  const std::vector<Ids> smollm2_ids = {
      {104, 22690, 33, 34, 35, 36, 37, 357, 506, 201, 8866, 253},
      {24, 104, 727, 198},
      {10813, 235, 231, 10813, 233, 138, 253, 15107, 235, 119, 321, 231, 10813, 235, 117},
      {81, 15442, 82, 3351, 250, 265}};
  const auto check = [&](const Tokenizer& tokenizer, const std::vector<Ids>& expected) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer.encode(texts[i]), expected[i]) << texts[i];
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(texts[i])), texts[i]);
    }
  };
  check(qwen3(), qwen3_ids);
  check(llama3(), llama3_ids);
  if (smollm2() == nullptr) GTEST_SKIP() << "the demonstration model is not there";
  check(*smollm2(), smollm2_ids);
}

TEST(Tokenizer, AnyTextComesBack) {
  std::mt19937 random(17);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t i = random() % 60; i > 0; --i) {
      text += static_cast<char>(random() % 4 == 0 ? random() % 128 : "ab 1\n<|'"[random() % 8]);
    }
    EXPECT_EQ(llama3().decode(llama3().encode(text)), text);
    EXPECT_EQ(qwen3().decode(qwen3().encode(text)), text);
    EXPECT_EQ(llama3().encode(text, {.parse_special = false, .add_special = false}),
              llama3().encode(text, {.parse_special = false, .add_special = false}));
  }
}

TEST(Tokenizer, BadUtf8IsTakenAsReplacementCharacters) {
  EXPECT_EQ(qwen3().encode("a\xFFz\xE4\xB8"), qwen3().encode("a\uFFFDz\uFFFD"));
  EXPECT_EQ(qwen3().decode(qwen3().encode(std::string("a\0b", 3))), std::string("a\0b", 3));
  // Half of a character decodes to one too, its bytes stay as they are.
  const TokenId half = *qwen3().find("ä");
  EXPECT_EQ(qwen3().piece_bytes(half), "\xE4");
  EXPECT_EQ(qwen3().decode(Ids{half}), "\uFFFD");
}

TEST(Tokenizer, SpecialStringsAreTextWhenAskedFor) {
  const auto ids = qwen3().encode("<|im_start|>a<think>", {.parse_special = false});
  for (const TokenId id : ids) EXPECT_LT(id, 151643);
  EXPECT_EQ(qwen3().decode(ids), "<|im_start|>a<think>");
  EXPECT_EQ(qwen3().encode("<|im_start|>a<think>").size(), 3U);
}

TEST(Tokenizer, SkipSpecialLeavesOutSpecialOnesOnly) {
  const auto ids = qwen3().encode("<|im_start|>a<think>b<|im_end|>");
  EXPECT_EQ(qwen3().decode(ids, {.skip_special = true}), "a<think>b");
  EXPECT_TRUE(qwen3().is_special(151644));
  EXPECT_FALSE(qwen3().is_special(151667));
  EXPECT_FALSE(qwen3().is_special(-1));
}

TEST(Tokenizer, AnIdOutsideTheVocabularyIsNamed) {
  for (const TokenId id : {-1, 151669, 2147483647}) {
    const auto message = error_of([&] { return qwen3().decode(Ids{id}); });
    EXPECT_NE(message.find(std::to_string(id)), std::string::npos);
    EXPECT_NE(message.find("151669"), std::string::npos);
    EXPECT_FALSE(error_of([&] { return qwen3().piece(id); }).empty());
    EXPECT_FALSE(error_of([&] { return qwen3().piece_bytes(id); }).empty());
  }
}

TEST(Tokenizer, EveryPieceIsFoundBySpelling) {
  for (TokenId id = 0; id < qwen3().vocabulary_size(); ++id) {
    ASSERT_EQ(qwen3().find(qwen3().piece(id)), id);
  }
  EXPECT_EQ(qwen3().piece(*qwen3().find("\u0120color")), "\u0120color");
  EXPECT_EQ(qwen3().piece_bytes(*qwen3().find("\u0120color")), " color");
  EXPECT_EQ(qwen3().find("no such piece"), std::nullopt);
  EXPECT_EQ(qwen3().find("\xFF"), std::nullopt);
}

// A folder with the given optional files.
SpecialPolicy policy_of(const Json& tokenizer, const Json& config, const Json& model_config,
                        const Json& generation) {
  const TemporaryFolder folder;
  static_cast<void>(folder.write("tokenizer.json", tokenizer.dump()));
  if (!config.is_null()) static_cast<void>(folder.write("tokenizer_config.json", config.dump()));
  if (!model_config.is_null()) static_cast<void>(folder.write("config.json", model_config.dump()));
  if (!generation.is_null()) {
    static_cast<void>(folder.write("generation_config.json", generation.dump()));
  }
  return Tokenizer::open(folder.path()).special();
}

TEST(Policy, EosIdsComeFromAllFilesOnce) {
  const Json base = small_tokenizer({});
  EXPECT_EQ(policy_of(base, nullptr, nullptr, nullptr).eos, Ids{});
  EXPECT_EQ(policy_of(base, nullptr, {{"eos_token_id", 7}}, nullptr).eos, Ids{7});
  EXPECT_EQ(
      policy_of(base, {{"eos_token", "A"}}, {{"eos_token_id", 7}}, {{"eos_token_id", {8, 7}}}).eos,
      (Ids{8, 7, 'A'}));
  EXPECT_EQ(policy_of(base, {{"eos_token", {{"content", "A"}}}}, {{"eos_token_id", nullptr}},
                      {{"eos_token_id", -1}})
                .eos,
            Ids{'A'});
}

TEST(Policy, FlagsOfTheConfigurationReplaceTheTemplate) {
  Json base = small_tokenizer({});
  const auto ids = [&](const Json& config) {
    return open_json(base, config).encode("x", {.parse_special = true, .add_special = true});
  };
  const Json bos_true = {{"bos_token", "<"}, {"eos_token", ">"}, {"add_bos_token", true}};
  EXPECT_EQ(ids(bos_true), (Ids{'<', 'x'}));  // DeepSeek: the flag alone
  base["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<"}}}},
        {{"Sequence", {{"id", "A"}}}},
        {{"SpecialToken", {{"id", ">"}}}}}},
      {"special_tokens", {{"<", {{"ids", {'<'}}}}, {">", {{"ids", {'>', '!'}}}}}}};
  EXPECT_EQ(ids(nullptr), (Ids{'<', 'x', '>', '!'}));
  EXPECT_EQ(ids(Json{{"bos_token", "<"}}), (Ids{'<', 'x', '>', '!'}));
  EXPECT_EQ(ids(bos_true), (Ids{'<', 'x'}));
  EXPECT_EQ(ids(Json{{"bos_token", "<"}, {"add_bos_token", false}}), Ids{'x'});
  EXPECT_EQ(ids(Json{{"eos_token", ">"}, {"add_eos_token", true}}), (Ids{'x', '>'}));
  EXPECT_EQ(ids(Json{{"bos_token", nullptr}, {"add_bos_token", true}}), Ids{'x'});
}

TEST(Policy, ATemplateOfTheModelIsKept) {
  const Json base = small_tokenizer({});
  EXPECT_EQ(open_json(base).chat_template(), std::nullopt);
  EXPECT_EQ(open_json(base, {{"chat_template", "t"}}).chat_template(), "t");
  const Json named = {{"name", "default"}, {"template", "d"}};
  const Json other = {{"name", "tool_use"}, {"template", "u"}};
  EXPECT_EQ(open_json(base, {{"chat_template", {other, named}}}).chat_template(), "d");
}

}  // namespace
}  // namespace onset::testing
