#include "onset/serve/served_model.h"

#include "onset/serve/api_error.h"

namespace onset {
namespace {

std::vector<std::int64_t> with_bos(const ServedModel& served, const std::vector<TokenId>& ids) {
  std::vector<std::int64_t> result(ids.begin(), ids.end());
  const auto& special = served.tokenizer.special();
  const bool wanted = special.add_bos && special.bos;
  if (wanted && (result.empty() || result.front() != *special.bos)) {
    result.insert(result.begin(), *special.bos);
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> encode_raw(const ServedModel& served, std::string_view text) {
  return with_bos(served, served.tokenizer.encode(text));
}

std::vector<std::int64_t> encode_messages(const ServedModel& served, const OrderedJson& messages,
                                          const ChatOptions& options) {
  if (!served.chat_format) {
    throw ApiError(
        "the model has no chat format that onset knows: use /v1/completions, or start the server "
        "with --chat-format NAME",
        {.param = "messages", .code = "no_chat_format"});
  }
  try {
    const auto chat = render_chat_text(*served.chat_format, messages, options);
    return with_bos(served, served.parse_special
                                ? served.tokenizer.encode(chat.text)
                                : encode_chat(*served.chat_format, served.tokenizer, chat));
  } catch (...) {
    throw current_api_error("messages");
  }
}

}  // namespace onset
