// Log-probabilities in the two forms of OpenAI's API. Torch-free.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "onset/base/json.h"
#include "onset/generate/generator.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {

// Of a chat: {"content": [{"token", "logprob", "bytes", "top_logprobs": [..]}, ..]}. `bytes` are
// the token's own, also where they are a part of a character; `token` then spells them: "\xe2\x82".
[[nodiscard]] OrderedJson chat_logprobs_json(std::span<const GeneratedToken> tokens,
                                             const Tokenizer& tokenizer);

// Of a completion: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, arrays with an
// entry a token. A token that is a part of a character is spelled "bytes:\xe2\x82". `top_logprobs`
// holds the token itself too.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The tokens of the prompt, with offsets into its text. The first has no log-probability.
  void add_prompt(std::span<const GeneratedToken> tokens, std::string_view text);
  // Moves on without tokens: a prompt that is not given back counts in the offsets of what follows.
  void skip(std::string_view text);
  // Generated ones, whose text is their bytes; `hides_special`: special tokens have none.
  void add(std::span<const GeneratedToken> tokens, bool hides_special);
  // What was added since the last call.
  [[nodiscard]] OrderedJson take();

 private:
  void add_entry(const GeneratedToken& token, bool is_first);

  const Tokenizer& tokenizer_;
  std::size_t offset_ = 0;  // in characters
  OrderedJson tokens_ = OrderedJson::array();
  OrderedJson logprobs_ = OrderedJson::array();
  OrderedJson tops_ = OrderedJson::array();
  OrderedJson offsets_ = OrderedJson::array();
};

}  // namespace onset
