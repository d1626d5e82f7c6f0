// From the text of items to token ids, as lm-evaluation-harness 0.4 does it, so that scores can be
// compared item by item. Torch-free.
//
// - White space at the end of a context is the continuation's: "Answer: " + "A" is "Answer:" + "
// A".
// - Context and continuation are encoded together; the continuation is what follows the first n
//   tokens of that, n the number of tokens of the context encoded alone. Where a token spans the
//   border the model is given the context as encoded alone, as there.
// - BOS comes before a text where the tokenizer's configuration says so, and once: not before a
//   text that begins with it. A text that a chat format wrote has what the format wrote and no
//   other; special tokens that its messages or choices spell are text (encode_chat of
//   tokenizer/chat.h), where lm-evaluation-harness takes them for tokens. EOS is never put behind a
//   text.
// - An empty context is the BOS token, or, where the vocabulary has none, the token that ends a
//   text; a continuation that begins with that token gives it up as its context.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/eval/item.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {

struct TokenPair {
  std::vector<std::int64_t> context;       // at least one token
  std::vector<std::int64_t> continuation;  // at least one token
};

class ItemEncoder {
 public:
  // `bos`: whether it is put before texts; not given: as the tokenizer's configuration says. The
  // tokenizer must outlive the encoder. Throws a usage error where BOS is asked for and the
  // vocabulary has none.
  ItemEncoder(const Tokenizer& tokenizer, std::optional<bool> bos);

  // Of a choice item, one pair a choice. Throws an input error that names the item: no choices, a
  // choice without a token of its own, an empty context of a model without BOS and end token.
  [[nodiscard]] std::vector<TokenPair> pairs(const EvalItem& item) const;
  // Of a generation item. Throws an input error for a prompt without a token.
  [[nodiscard]] std::vector<std::int64_t> prompt(const EvalItem& item) const;
  // Of a text item, without BOS: windows begin with bos().
  [[nodiscard]] std::vector<std::int64_t> text(const EvalItem& item) const;
  // What is put before texts.
  [[nodiscard]] std::optional<std::int64_t> bos() const { return bos_; }

 private:
  // `text`: the item's context or the beginning of it, with what is said behind `context_size`.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text, const EvalItem& item,
                                                 std::size_t context_size) const;
  [[nodiscard]] TokenPair pair_without_context(const EvalItem& item, const Choice& choice) const;

  const Tokenizer& tokenizer_;
  std::optional<std::int64_t> bos_;
};

// "item 12 (anatomy)", for messages.
[[nodiscard]] std::string describe(const EvalItem& item);

}  // namespace onset
