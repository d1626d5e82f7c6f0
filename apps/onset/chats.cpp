#include "chats.h"

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset::app {

ChatWriter::ChatWriter(const std::string& format_name) {
  named_ = !format_name.empty();
  if (named_) format_ = chat_format(format_name);
}

const ChatFormat& ChatWriter::format(const Tokenizer& tokenizer, const Log& log) {
  if (!format_) {
    format_ = chat_format_of(tokenizer);
    if (const auto caution = chat_template_caution(tokenizer)) log.warning(*caution);
  }
  return *format_;
}

void ChatWriter::check_markers(const Tokenizer& tokenizer, const std::string& text,
                               const Log& log) {
  if (!named_) return;
  std::vector<std::string> missing;
  for (const auto marker : missing_chat_markers(*format_, tokenizer)) {
    if (text.find(marker) == std::string::npos) continue;
    if (said_.emplace(marker).second) missing.emplace_back(marker);
  }
  if (missing.empty()) return;
  const bool one = missing.size() == 1;
  log.warning(str_cat("chat format ", format_->name, " writes ", join(missing, ", "), ", which ",
                      one ? "is" : "are", " ordinary text to this model's tokenizer, ",
                      one ? "no token" : "no tokens", ": the format is hardly the model's"));
}

ChatText ChatWriter::write(const Tokenizer& tokenizer, const OrderedJson& messages,
                           const ChatOptions& options, const Log& log) {
  const auto& chosen = format(tokenizer, log);
  for (const auto& sentence : unread_chat_options(chosen, messages, options)) {
    if (said_.insert(sentence).second) log.warning(sentence);
  }
  auto chat = render_chat_text(chosen, messages, options);
  check_markers(tokenizer, chat.text, log);
  return chat;
}

std::vector<TokenId> ChatWriter::encode(const Tokenizer& tokenizer, const ChatText& chat,
                                        bool parse_special) const {
  return parse_special ? tokenizer.encode(chat.text) : encode_chat(*format_, tokenizer, chat);
}

std::optional<ChatFormat> choose_chat_format(const std::string& name, const Tokenizer& tokenizer,
                                             const Log& log) {
  if (name.empty()) {
    if (const auto caution = chat_template_caution(tokenizer)) log.warning(*caution);
    const auto& own = tokenizer.chat_template();
    return own ? recognise_chat_format(*own) : std::nullopt;
  }
  const auto format = chat_format(name);
  for (const auto marker : missing_chat_markers(format, tokenizer)) {
    log.warning(str_cat("chat format ", name, " writes ", quote(marker),
                        ", which is no token of this model: it would be ordinary text"));
  }
  return format;
}

OrderedJson user_message(std::string_view text) {
  return OrderedJson::array({OrderedJson{{"role", "user"}, {"content", valid_utf8(text)}}});
}

}  // namespace onset::app
