// Rows 3, 5 and 21 of the faults that users met: where BOS goes, and where the space of an answer.
#include "onset/eval/encoding.h"

#include <gtest/gtest.h>

#include "support/support.h"
#include "tokenizer/small_tokenizer.h"

namespace onset::testing {
namespace {

using Ids = std::vector<std::int64_t>;

// Bytes, " A" (256), "ab" (257), then <s> (258) and </s> (259).
Tokenizer tokenizer(bool add_bos = false, bool with_bos = true, bool with_eos = true) {
  Json json = small_tokenizer({{" ", "A"}, {"a", "b"}});
  json["added_tokens"] = Json::array({added_token("<s>", 258), added_token("</s>", 259)});
  Json config = {{"add_bos_token", add_bos}};
  if (with_bos) config["bos_token"] = "<s>";
  if (with_eos) config["eos_token"] = "</s>";
  return open_json(json, config);
}

Ids bytes(std::string_view text) {
  Ids ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

EvalItem item_of(const std::string& context, const std::string& continuation) {
  return {.doc = 7, .context = context, .choices = {{continuation, continuation}}};
}

TEST(ItemEncoding, TheSpaceBelongsToTheAnswerWhereverItWasWritten) {
  const Tokenizer words = tokenizer();
  const ItemEncoder encoder(words, std::nullopt);
  const TokenPair outside = encoder.pairs(item_of("Answer:", " A")).front();
  EXPECT_EQ(outside.context, bytes("Answer:"));
  EXPECT_EQ(outside.continuation, Ids{256});
  const TokenPair inside = encoder.pairs(item_of("Answer: ", "A")).front();
  EXPECT_EQ(inside.context, outside.context);
  EXPECT_EQ(inside.continuation, outside.continuation);
  const TokenPair newline = encoder.pairs(item_of("Answer:\n\u00a0 ", "A")).front();
  EXPECT_EQ(newline.context, outside.context);
  EXPECT_EQ(newline.continuation, (Ids{'\n', 0xC2, 0xA0, 256}));
}

TEST(ItemEncoding, ATokenAcrossTheBorderLeavesTheContextAsItIsAlone) {
  const Tokenizer words = tokenizer();
  // "xa" + "bc" is x, ab, c together; the context alone is x, a.
  const TokenPair pair = ItemEncoder(words, std::nullopt).pairs(item_of("xa", "bc")).front();
  EXPECT_EQ(pair.context, bytes("xa"));
  EXPECT_EQ(pair.continuation, Ids{'c'});
  const std::string message = error_of(
      [&] { static_cast<void>(ItemEncoder(words, std::nullopt).pairs(item_of("xa", "b"))); });
  EXPECT_NE(message.find("item 7: the choice \"b\" has no token of its own"), std::string::npos)
      << message;
}

TEST(ItemEncoding, BosComesWhereTheTokenizerSaysSoAndOnce) {
  const Tokenizer adds = tokenizer(/*add_bos=*/true);
  const ItemEncoder encoder(adds, std::nullopt);
  EXPECT_EQ(encoder.pairs(item_of("x", " A")).front().context, (Ids{258, 'x'}));
  EXPECT_EQ(encoder.pairs(item_of("<s>x", " A")).front().context, (Ids{258, 'x'}));
  EvalItem chat = item_of("x", " A");
  chat.chat = true;
  EXPECT_EQ(encoder.pairs(chat).front().context, Ids{'x'});
  chat.context = "<s>x";
  EXPECT_EQ(encoder.pairs(chat).front().context, (Ids{258, 'x'}));
  EXPECT_EQ(encoder.prompt(chat), (Ids{258, 'x'}));
  // What a message or a choice spells is text.
  chat.context = "<s><s>x ";
  chat.said = {{3, 8}};
  chat.choices = {{"<s>", "<s>"}};
  EXPECT_EQ(encoder.prompt(chat), (Ids{258, '<', 's', '>', 'x', ' '}));
  const TokenPair pair = encoder.pairs(chat).front();
  EXPECT_EQ(pair.context, (Ids{258, '<', 's', '>', 'x'}));
  EXPECT_EQ(pair.continuation, (Ids{' ', '<', 's', '>'}));
  chat.choices.clear();
  EXPECT_EQ(ItemEncoder(adds, false).pairs(item_of("x", " A")).front().context, Ids{'x'});
  EXPECT_EQ(encoder.bos(), 258);
  EXPECT_EQ(encoder.text(item_of("<s>x", "")), Ids{'x'});

  const Tokenizer none = tokenizer();
  EXPECT_EQ(ItemEncoder(none, std::nullopt).prompt(item_of("x", "")), Ids{'x'});
  EXPECT_EQ(ItemEncoder(none, true).prompt(item_of("x", "")), (Ids{258, 'x'}));
  const Tokenizer without = tokenizer(false, /*with_bos=*/false);
  EXPECT_NE(error_of([&] { static_cast<void>(ItemEncoder(without, true)); }).find("no BOS token"),
            std::string::npos);
}

TEST(ItemEncoding, AnEmptyContextIsTheBosOrTheEndToken) {
  const Tokenizer with_bos = tokenizer();
  for (const std::string context : {"", " "}) {
    const TokenPair pair = ItemEncoder(with_bos, std::nullopt).pairs(item_of(context, "A")).front();
    EXPECT_EQ(pair.context, Ids{258});
    EXPECT_EQ(pair.continuation, context.empty() ? Ids{'A'} : Ids{256});
  }
  const TokenPair begun = ItemEncoder(with_bos, std::nullopt).pairs(item_of("", "<s>x")).front();
  EXPECT_EQ(begun.context, Ids{258});
  EXPECT_EQ(begun.continuation, Ids{'x'});
  const Tokenizer with_eos = tokenizer(false, /*with_bos=*/false);
  EXPECT_EQ(ItemEncoder(with_eos, std::nullopt).pairs(item_of("", "x")).front().context, Ids{259});
  const Tokenizer neither = tokenizer(false, false, /*with_eos=*/false);
  EXPECT_NE(error_of([&] {
              static_cast<void>(ItemEncoder(neither, std::nullopt).pairs(item_of("", "x")));
            }).find("neither a BOS nor an end token"),
            std::string::npos);
}

}  // namespace
}  // namespace onset::testing
