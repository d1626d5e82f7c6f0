#include "onset/train/row_encoder.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr std::string_view human_mark = "\n\nHuman:";
constexpr std::string_view assistant_mark = "\n\nAssistant:";

OrderedJson message(std::string_view role, std::string_view content) {
  return OrderedJson{{"role", role}, {"content", content}};
}

// Runs what knows nothing of rows, and puts the row before its errors.
template <typename Action>
auto in_row(const Record& record, Action&& action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error(error.kind(), str_cat(record.where(), ": ", error.what()), error.hint());
  }
}

TokenIds widened(const std::vector<TokenId>& ids) { return {ids.begin(), ids.end()}; }

}  // namespace

OrderedJson dialogue_messages(std::string_view text) {
  OrderedJson messages = OrderedJson::array();
  if (!text.starts_with(human_mark)) return messages;
  for (bool human = true; !text.empty(); human = !human) {
    text.remove_prefix(human ? human_mark.size() : assistant_mark.size());
    const auto end = std::min(text.find(human ? assistant_mark : human_mark), text.size());
    messages.push_back(message(human ? "user" : "assistant", trim(text.substr(0, end))));
    text.remove_prefix(end);
  }
  return messages;
}

Speech speech_of(const Record& record, const std::string& name, std::string_view role,
                 const DataOptions& options) {
  const auto& value = record.at(name);
  Speech speech;
  if (value.is_array()) {
    speech.is_chat = true;
    speech.messages = value;
    return speech;
  }
  require_input(value.is_string(), record.place(name),
                " should be a text or a list of messages, is ", value.type_name());
  speech.text = value.get<std::string>();
  if (!options.text_as_chat) return speech;
  speech.is_chat = true;
  speech.messages = dialogue_messages(speech.text);
  if (speech.messages.empty()) speech.messages.push_back(message(role, speech.text));
  const bool begins = role == "user";
  if (begins && !options.system.empty()) {
    speech.messages.insert(speech.messages.begin(), message("system", options.system));
  }
  return speech;
}

const Tokenizer& RowEncoder::tokenizer(const Record& record) const {
  if (options_.tokenizer == nullptr) {
    throw input_error(str_cat(record.where(), ": holds text, and the model has no tokenizer"),
                      "put the tokenizer's files beside the model, or give rows of token ids");
  }
  return *options_.tokenizer;
}

const ChatFormat& RowEncoder::format(const Record& record) const {
  if (!options_.chat) {
    throw input_error(
        str_cat(record.where(), ": holds messages, and the model has no chat format that is known"),
        "name one with --chat-format, or give the conversation as text");
  }
  return *options_.chat;
}

ChatOptions RowEncoder::chat_options(const Record& record) const {
  ChatOptions chat;
  chat.enable_thinking = options_.enable_thinking;
  if (const auto* tools = record.find("tools")) {
    chat.tools = tools->is_string() ? parse_ordered_json(tools->get_ref<const std::string&>(),
                                                         record.place("tools"))
                                    : *tools;
    require_input(chat.tools.is_array(), record.place("tools"), " should be a list, is ",
                  chat.tools.type_name());
  }
  if (const auto* given = record.find("chat_template_kwargs")) {
    const std::string place = record.place("chat_template_kwargs");
    require_input(given->is_object(), place, " should be an object, is ", given->type_name());
    for (const auto& [name, value] : given->items()) {
      require_input(name == "enable_thinking" && value.is_boolean(), place, ": ", quote(name),
                    " is not read; enable_thinking, true or false, is");
      chat.enable_thinking = value.get<bool>();
    }
  }
  return chat;
}

TokenIds RowEncoder::encode(std::string_view text, const Record& record) const {
  const auto& words = tokenizer(record);
  TokenIds ids = widened(words.encode(text));
  const auto& special = words.special();
  if (special.add_bos && special.bos && (ids.empty() || ids.front() != *special.bos)) {
    ids.insert(ids.begin(), *special.bos);
  }
  return ids;
}

TokenIds RowEncoder::document(std::string_view text, const Record& record) const {
  TokenIds ids = encode(text, record);
  const auto own = tokenizer(record).special().end_of_text;
  if (!options_.eos && !own) {
    throw input_error(str_cat(record.where(), ": the tokenizer names no token that ends a text"),
                      "name one with eos_token");
  }
  const std::int64_t eos = options_.eos ? *options_.eos : *own;
  if (ids.empty() || ids.back() != eos) ids.push_back(eos);
  return ids;
}

TokenIds RowEncoder::prompt(const Speech& prompt, const Record& record) const {
  if (!prompt.is_chat) return encode(prompt.text, record);
  const auto& chat_format = format(record);
  const auto& words = tokenizer(record);
  auto options = chat_options(record);
  options.add_generation_prompt = true;
  return in_row(record, [&] {
    const bool answered = !prompt.messages.empty() && prompt.messages.back().is_object() &&
                          prompt.messages.back().value("role", "") == "assistant";
    require_input(!answered, "the prompt ends with the assistant, who should speak next");
    return widened(
        encode_chat(chat_format, words, render_chat_text(chat_format, prompt.messages, options)));
  });
}

Continuation RowEncoder::conversation(const Speech& speech, const Record& record) const {
  const auto& chat_format = format(record);
  const auto& words = tokenizer(record);
  return in_row(record, [&] {
    auto trained = trained_tokens(chat_format, words, speech.messages, chat_options(record),
                                  /*literal=*/true);
    Continuation whole;
    whole.ids = widened(trained.ids);
    whole.replies = std::move(trained.mask);
    whole.straddling = static_cast<std::int64_t>(trained.straddle.size());
    return whole;
  });
}

Continuation RowEncoder::continued(const Speech& prompt, const Speech& completion,
                                   const Record& record) const {
  if (prompt.is_chat != completion.is_chat) {
    throw input_error(
        str_cat(record.where(), ": prompt and completion should both be text or both messages"));
  }
  const TokenIds alone = this->prompt(prompt, record);
  Continuation whole;
  if (prompt.is_chat) {
    Speech all = prompt;
    for (const auto& spoken : completion.messages) all.messages.push_back(spoken);
    whole = conversation(all, record);
  } else {
    whole.ids = document(prompt.text + completion.text, record);
  }
  whole.begin = common_prefix(alone, whole.ids);
  whole.joined = whole.begin < alone.size();
  return whole;
}

std::size_t common_prefix(const TokenIds& a, const TokenIds& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

}  // namespace onset
