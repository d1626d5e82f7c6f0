// Which tokens of a conversation a model is trained on.
#include "onset/tokenizer/chat.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

ChatOptions options_of(const OrderedJson& row) {
  ChatOptions options;
  options.enable_thinking = row["options"].value("enable_thinking", true);
  options.add_generation_prompt = false;
  return options;
}

class ChatTraining : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    tokenizer = tokenizer_of(GetParam());
    if (tokenizer == nullptr) GTEST_SKIP() << "the demonstration model is not there";
    rows = read_jsonl(testing::data("tokenizers/" + GetParam() + ".chat_training.jsonl"));
    ASSERT_GE(rows.size(), 14U);
  }
  const Tokenizer* tokenizer = nullptr;
  std::vector<OrderedJson> rows;
};

TEST_P(ChatTraining, RepliesStandWhereTheReferenceSaysSo) {
  for (const auto& row : rows) {
    const auto chat = render_chat_text(chat_format(GetParam()), row["messages"], options_of(row));
    EXPECT_EQ(chat.text, row["text"].get<std::string>());
    std::vector<TextSpan> expected;
    for (const auto& span : row["reply_spans_bytes"]) {
      expected.push_back({span[0].get<std::size_t>(), span[1].get<std::size_t>()});
    }
    EXPECT_EQ(chat.replies, expected) << row.dump();
  }
}

TEST_P(ChatTraining, MasksEqualTheReference) {
  for (const auto& row : rows) {
    const auto trained =
        trained_tokens(chat_format(GetParam()), *tokenizer, row["messages"], options_of(row));
    EXPECT_EQ(trained.ids, ids_of(row["ids"])) << row.dump();
    EXPECT_EQ(trained.mask, row["mask"].get<std::vector<std::uint8_t>>()) << row.dump();
    EXPECT_EQ(trained.straddle, row["straddle"].get<std::vector<std::size_t>>()) << row.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ChatTraining,
                         ::testing::Values("qwen3", "llama3_1", "deepseek_v3", "smollm2"),
                         [](const auto& row) { return row.param; });

// Another route to the same place: the prompt that generation would start from ends where the reply
// begins, and the reply is what the conversation then goes on with.
TEST(ChatReplies, BeginWhereThePromptEnds) {
  const auto messages = OrderedJson::parse(
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
          {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}])");
  for (const auto& format : chat_formats()) {
    // These prompts open a thought, which a template cuts from what was said before.
    if (format.name == "qwen3" || format.name == "deepseek_r1") continue;
    ChatOptions options;
    options.add_generation_prompt = false;
    const ChatText whole = render_chat_text(format, messages, options);
    ASSERT_EQ(whole.replies.size(), 2U) << format.name;
    options.add_generation_prompt = true;
    for (std::size_t turn = 0; turn < 2; ++turn) {
      const OrderedJson before(messages.begin(),
                               messages.begin() + static_cast<std::ptrdiff_t>(2 * turn + 1));
      const std::string prompt = render_chat(format, before, options);
      EXPECT_EQ(whole.text.substr(0, whole.replies[turn].start), prompt) << format.name;
      const auto reply =
          whole.text.substr(prompt.size(), whole.replies[turn].end - whole.replies[turn].start);
      EXPECT_NE(reply.find(turn == 0 ? 'b' : 'd'), std::string::npos) << format.name;
    }
  }
}

// No fixture holds these: what is trained decodes to what the assistant says, ends of turns
// included.
TEST(ChatTraining, WhatIsTrainedIsWhatTheAssistantSays) {
  const auto messages = OrderedJson::parse(
      R"([{"role": "user", "content": "a \u00e9 </s> b"}, {"role": "assistant", "content": "Oui, \u4e2d."},
          {"role": "user", "content": "more"}, {"role": "assistant", "content": "No\nmore"}])");
  const auto trained_text = [&](const char* format, const Tokenizer& tokenizer) {
    const auto trained = trained_tokens(chat_format(format), tokenizer, messages);
    EXPECT_TRUE(trained.straddle.empty());
    std::string text;
    for (std::size_t i = 0; i < trained.ids.size(); ++i) {
      if (trained.mask[i] == 1) text += tokenizer.piece_bytes(trained.ids[i]);
    }
    return text;
  };
  EXPECT_EQ(trained_text("llama2", llama2()), " Oui, \u4e2d. </s> No\nmore </s>");
  EXPECT_EQ(trained_text("mistral_v1", llama2_new_prefix()), " Oui, \u4e2d.</s> No\nmore</s>");
  EXPECT_EQ(trained_text("phi3", opened("ggml/ggml-vocab-phi-3.gguf")),
            " Oui, \u4e2d.<|end|> No\nmore<|end|>");
  EXPECT_EQ(trained_text("deepseek_r1", opened("deepseek_v3")),
            "Oui, \u4e2d.<\uFF5Cend\u2581of\u2581sentence\uFF5C>"
            "No\nmore<\uFF5Cend\u2581of\u2581sentence\uFF5C>");
}

using Coverage = CoveredTokens::Coverage;

TEST(Coverage, CountsTheBytesOfEveryToken) {
  const auto covered =
      qwen3().encode_with_coverage("Hello color<|im_end|>x", std::vector<TextSpan>{{2, 12}});
  EXPECT_EQ(covered.ids, qwen3().encode("Hello color<|im_end|>x"));
  EXPECT_EQ(covered.coverage,
            (std::vector<Coverage>{Coverage::part, Coverage::all, Coverage::part, Coverage::none}));
}

TEST(Coverage, FollowsWhatTheTokenizerWrites) {
  // NFC makes one character of two; SentencePiece adds a space before the text and writes bytes.
  const std::string text = "e\u0301e\u0301 x";
  const auto nfc = qwen3().encode_with_coverage(text, std::vector<TextSpan>{{6, 8}});
  EXPECT_EQ(nfc.ids, qwen3().encode(text));
  EXPECT_EQ(nfc.coverage.back(), Coverage::all);
  EXPECT_EQ(nfc.coverage.front(), Coverage::none);
  const auto spm = llama2().encode_with_coverage("ab \U0001F999 cd", std::vector<TextSpan>{{3, 7}});
  EXPECT_EQ(spm.ids, llama2().encode("ab \U0001F999 cd"));
  std::string covered;
  for (std::size_t i = 0; i < spm.ids.size(); ++i) {
    if (spm.coverage[i] == Coverage::all) covered += llama2().piece_bytes(spm.ids[i]);
  }
  EXPECT_EQ(covered, "\U0001F999");
}

}  // namespace
}  // namespace onset::testing
