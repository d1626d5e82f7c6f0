// The pre-tokenizers of GGUF files for which no vocabulary is at hand, split as their rules say.
#include "onset/tokenizer/gguf_pretokenizers.h"

#include "support/support.h"

namespace onset::testing {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(const std::string& pre, const std::string& text) {
  Pretokenizer::Scratch scratch;
  const std::string whole(gguf_pretokenizer(pre, "test").pretokenizer.run(text, scratch));
  Pieces pieces;
  std::size_t start = 0;
  for (const std::size_t end : scratch.ends) {
    pieces.push_back(whole.substr(start, end - start));
    start = end;
  }
  return pieces;
}

// One white space goes with the word or sign behind it; what stays is a piece of its own.
TEST(DeepseekLlm, LettersAndSignsTakeOneSpaceAlong) {
  EXPECT_EQ(pieces_of("deepseek-llm", "Hello  world, it's"),
            (Pieces{"Hello", " ", " world", ",", " it", "'", "s"}));
  EXPECT_EQ(pieces_of("deepseek-llm", "a\t!x"), (Pieces{"a", "\t!", "x"}));
  EXPECT_EQ(pieces_of("deepseek-llm", "a  "), (Pieces{"a", "  "}));
}

TEST(DeepseekLlm, EveryLineBreakStandsAlone) {
  EXPECT_EQ(pieces_of("deepseek-llm", "a\r\n\n b"), (Pieces{"a", "\r", "\n", "\n", " b"}));
}

TEST(DeepseekLlm, NumbersStayWholeAndApart) {
  EXPECT_EQ(pieces_of("deepseek-llm", "x 12345y"), (Pieces{"x", " ", "12345", "y"}));
}

// Only letters with a case are words; Han and kana are runs, Hebrew and Arabic what is left over.
// The range of signs from ":" to "~" holds the letters of ASCII, so that these part from others.
TEST(DeepseekLlm, ScriptsAreToldApart) {
  EXPECT_EQ(pieces_of("deepseek-llm", "\u00e9\u00e8\u4e2d\u6587\u3042"),
            (Pieces{"\u00e9\u00e8", "\u4e2d\u6587\u3042"}));
  EXPECT_EQ(pieces_of("deepseek-llm", "\u00e9t\u00e9"), (Pieces{"\u00e9", "t", "\u00e9"}));
  EXPECT_EQ(pieces_of("deepseek-llm", "\u05d0\u05d1a"), (Pieces{"\u05d0\u05d1", "a"}));
  EXPECT_EQ(pieces_of("deepseek-llm", "\u212a\u2126\u1f7d"), (Pieces{"\u212a\u2126\u1f7d"}));
  // U+3001 is a sign of the third pass and a script of the fifth.
  EXPECT_EQ(pieces_of("deepseek-llm", "\uff01\uff0fa"), (Pieces{"\uff01\uff0f", "a"}));
  EXPECT_EQ(pieces_of("deepseek-llm", "\u3001\uff01a"), (Pieces{"\u3001", "\uff01", "a"}));
}

TEST(DeepseekCoder, DigitsStandAlone) {
  EXPECT_EQ(pieces_of("deepseek-coder", "if (x12)"), (Pieces{"if", " (", "x", "1", "2", ")"}));
}

TEST(Tekken, WordsBreakBeforeCapitals) {
  EXPECT_EQ(pieces_of("tekken", "aBcD 12"), (Pieces{"a", "Bc", "D", " ", "1", "2"}));
}

TEST(GgufPretokenizers, AnUnknownNameListsTheKnownOnes) {
  const auto message =
      error_of([] { return gguf_pretokenizer("odd", "model.gguf").pretokenizer.steps.size(); });
  for (const char* name : {"model.gguf", "\"odd\"", "deepseek-llm", "llama-bpe", "default"}) {
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace onset::testing
