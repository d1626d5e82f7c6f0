// Texts and conversations of rows to token ids, as TRL 1.16 makes them (docs/train-data.md).
// Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onset/train/data_options.h"
#include "onset/train/examples.h"
#include "onset/train/records.h"

namespace onset {

// What a column holds: a text, or the messages of a conversation.
struct Speech {
  bool is_chat = false;
  std::string text = {};
  OrderedJson messages = OrderedJson::array();
};

// A text becomes a message of `role` where the options take texts as chats. Throws an input error
// for what is neither a text nor a list of messages.
[[nodiscard]] Speech speech_of(const Record& record, const std::string& name, std::string_view role,
                               const DataOptions& options);

// The messages of "\n\nHuman: ..\n\nAssistant: .."; empty where the text does not begin so.
[[nodiscard]] OrderedJson dialogue_messages(std::string_view text);

// A prompt with what follows it, encoded together.
struct Continuation {
  TokenIds ids;
  // Where the completion begins: behind the tokens that this and the prompt encoded alone begin
  // with.
  std::size_t begin = 0;
  bool joined = false;  // that is not all of the prompt
  // Of a chat, beside ids: the assistant's words with the tokens that end its turns.
  std::vector<std::uint8_t> replies;
  std::int64_t straddling = 0;  // of these tokens, those that also hold other bytes
};

class RowEncoder {
 public:
  // The options must outlive it.
  explicit RowEncoder(const DataOptions& options) : options_(options) {}

  // All of these throw an input error that names the row: no tokenizer, no chat format, messages
  // that the format does not write.

  // What generation starts from: a text with BOS where the tokenizer says so, or a conversation
  // that ends with the user, up to where the assistant speaks.
  [[nodiscard]] TokenIds prompt(const Speech& prompt, const Record& record) const;
  // A text ends with the end token; a conversation as its format ends it. Both parts are of one
  // kind.
  [[nodiscard]] Continuation continued(const Speech& prompt, const Speech& completion,
                                       const Record& record) const;
  // A whole conversation; begin is 0.
  [[nodiscard]] Continuation conversation(const Speech& speech, const Record& record) const;
  // A text with BOS where the tokenizer says so, and the end token.
  [[nodiscard]] TokenIds document(std::string_view text, const Record& record) const;

 private:
  [[nodiscard]] const Tokenizer& tokenizer(const Record& record) const;
  [[nodiscard]] const ChatFormat& format(const Record& record) const;
  [[nodiscard]] ChatOptions chat_options(const Record& record) const;
  [[nodiscard]] TokenIds encode(std::string_view text, const Record& record) const;

  const DataOptions& options_;
};

// How many tokens both begin with.
[[nodiscard]] std::size_t common_prefix(const TokenIds& a, const TokenIds& b);

}  // namespace onset
