// Chats to text, in the model's chat format or in the one that was named.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/base/log.h"
#include "onset/tokenizer/chat.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset::app {

class ChatWriter {
 public:
  // An empty name takes the model's own format. A usage error for a name that is not known.
  explicit ChatWriter(const std::string& format_name);

  // The chat as text. Warns, each thing once: of a template that may have been edited, of a named
  // format's markers that the text holds and the tokenizer does not know, and of options that the
  // format does not read.
  [[nodiscard]] ChatText write(const Tokenizer& tokenizer, const OrderedJson& messages,
                               const ChatOptions& options, const Log& log);
  // Its ids. What messages say is text, in which special tokens are found with `parse_special`
  // alone; what the format writes around them is what it is.
  [[nodiscard]] std::vector<TokenId> encode(const Tokenizer& tokenizer, const ChatText& chat,
                                            bool parse_special) const;

 private:
  [[nodiscard]] const ChatFormat& format(const Tokenizer& tokenizer, const Log& log);

  void check_markers(const Tokenizer& tokenizer, const std::string& text, const Log& log);

  std::optional<ChatFormat> format_;
  bool named_ = false;
  std::set<std::string> said_;
};

// The format that was named, else the model's own; nothing where it has none that is known. Warns
// of markers of a named format that are no tokens of the model, and of a template that may have
// been edited. A usage error for a name that is not known.
[[nodiscard]] std::optional<ChatFormat> choose_chat_format(const std::string& name,
                                                           const Tokenizer& tokenizer,
                                                           const Log& log);

// What --chat makes of a text: one message of a user.
[[nodiscard]] OrderedJson user_message(std::string_view text);

}  // namespace onset::app
