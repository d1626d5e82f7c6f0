#include "chats.h"

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset::app {

ChatWriter::ChatWriter(const std::string& format_name) {
  if (!format_name.empty()) format_ = chat_format(format_name);
}

const ChatFormat& ChatWriter::format(const Tokenizer& tokenizer, const Log& log) {
  if (!format_) {
    format_ = chat_format_of(tokenizer);
    if (const auto caution = chat_template_caution(tokenizer)) log.warning(*caution);
  } else if (!markers_checked_) {
    std::vector<std::string> missing;
    for (const auto marker : missing_chat_markers(*format_, tokenizer)) {
      missing.emplace_back(marker);
    }
    if (!missing.empty()) {
      log.warning(str_cat("chat format ", format_->name, " writes ", join(missing, ", "),
                          ", which ", missing.size() == 1 ? "is" : "are",
                          " ordinary text to this model's tokenizer, not a token: the format is "
                          "hardly the model's"));
    }
  }
  markers_checked_ = true;
  return *format_;
}

std::string ChatWriter::write(const Tokenizer& tokenizer, const OrderedJson& messages,
                              const ChatOptions& options, const Log& log) {
  const auto& chosen = format(tokenizer, log);
  for (const auto& sentence : unread_chat_options(chosen, messages, options)) {
    if (said_.insert(sentence).second) log.warning(sentence);
  }
  return render_chat(chosen, messages, options);
}

OrderedJson user_message(std::string_view text) {
  return OrderedJson::array({OrderedJson{{"role", "user"}, {"content", valid_utf8(text)}}});
}

}  // namespace onset::app
