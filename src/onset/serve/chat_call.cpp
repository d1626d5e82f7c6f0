// Reading POST /v1/chat/completions.
#include <limits>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/serve/api_error.h"
#include "onset/serve/calls.h"

namespace onset {
namespace {

// The text of a message's content; null where there is none.
OrderedJson content_of(Fields& message) {
  const Json* content = message.find("content");
  if (content == nullptr) return nullptr;
  const std::string path = message.path_of("content");
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    throw bad_field(
        path, str_cat(path, ": should be a string or an array of parts, is ", kind_of(*content)));
  }
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    Fields part((*content)[i], str_cat(path, "[", i, "]"));
    const auto type = part.text("type").value_or("");
    if (type != "text") {
      throw unsupported_field(part.path_of("type"),
                              str_cat(part.path_of("type"), ": ", quote(type, 40),
                                      " is not supported: the model reads parts of type text"));
    }
    const auto said = part.text("text");
    if (!said) throw bad_field(part.path_of("text"), part.path_of("text") + ": is missing");
    part.refuse_others();
    text += *said;
  }
  return text;
}

// What the API's own answers hold beside their text, null or empty; anything else is not known.
void refuse_filled(Fields& message, const std::vector<std::string>& keys) {
  for (const auto& key : keys) {
    const Json* value = message.find(key);
    if (value == nullptr || (value->is_array() && value->empty())) continue;
    throw unsupported_field(message.path_of(key),
                            str_cat(message.path_of(key), ": is not supported"));
  }
}

OrderedJson message_of(const Json& given, const std::string& path) {
  Fields fields(given, path);
  OrderedJson message;
  auto role = fields.text("role");
  if (!role) throw bad_field(fields.path_of("role"), fields.path_of("role") + ": is missing");
  message["role"] = *role == "developer" ? "system" : *role;
  message["content"] = content_of(fields);
  for (const auto* key : {"tool_calls", "tool_call_id", "reasoning_content"}) {
    if (const Json* value = fields.find(key)) message[key] = OrderedJson::parse(value->dump());
  }
  refuse_filled(fields, {"function_call", "refusal", "audio", "annotations"});
  fields.ignore({"name"});
  fields.refuse_others();
  return message;
}

// Parts of the API that onset does not have, unless they ask for nothing.
void refuse_unsupported(Fields& fields) {
  for (const auto* key : {"tools", "functions"}) {
    const Json* value = fields.find(key);
    if (value == nullptr || (value->is_array() && value->empty())) continue;
    throw unsupported_field(key, str_cat(key, ": calling tools is not supported"));
  }
  for (const auto* key : {"tool_choice", "function_call"}) {
    const Json* value = fields.find(key);
    if (value == nullptr || *value == "none" || *value == "auto") continue;
    throw unsupported_field(key, str_cat(key, ": calling tools is not supported"));
  }
  for (const auto* key : {"audio", "prediction", "web_search_options"}) {
    if (fields.find(key) != nullptr) {
      throw unsupported_field(key, str_cat(key, ": is not supported"));
    }
  }
  if (const Json* modalities = fields.find("modalities");
      modalities != nullptr && *modalities != Json::array({"text"})) {
    throw unsupported_field("modalities", "modalities: only [\"text\"] is supported");
  }
  if (const Json* format = fields.find("response_format")) {
    Fields inner(*format, "response_format");
    if (inner.text("type").value_or("") != "text") {
      throw unsupported_field("response_format",
                              R"(response_format: only {"type": "text"} is supported)");
    }
  }
}

std::int64_t max_tokens_of(Fields& fields) {
  const auto newer = fields.integer("max_completion_tokens", 1);
  const auto older = fields.integer("max_tokens", 1);
  if (newer && older && *newer != *older) {
    throw bad_field("max_tokens", "max_tokens and max_completion_tokens differ: give one of them");
  }
  // Without it as much as the context holds.
  return newer.value_or(older.value_or(std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

OrderedJson read_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty()) {
    throw bad_field("messages", str_cat("messages: should be an array of at least one message, is ",
                                        messages.is_array() ? "empty" : kind_of(messages)));
  }
  OrderedJson result = OrderedJson::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    result.push_back(message_of(messages[i], str_cat("messages[", i, "]")));
  }
  return result;
}

ChatOptions read_chat_options(Fields& fields) {
  ChatOptions options;
  const Json* given = fields.find("chat_template_kwargs");
  if (given == nullptr) return options;
  Fields inner(*given, "chat_template_kwargs");
  options.enable_thinking = inner.boolean("enable_thinking");
  options.date_string = inner.text("date_string");
  inner.refuse_others();
  return options;
}

CompletionCall read_chat(const Json& body, const ServedModel& served, MaskChooser& masks) {
  Fields fields(body, "");
  CompletionCall call;
  call.chat = true;
  call.fields = read_generation_fields(fields, served, masks);
  refuse_unsupported(fields);
  auto& request = call.fields.request;
  request.max_new_tokens = max_tokens_of(fields);
  request.logprobs = fields.boolean("logprobs").value_or(false);
  if (const auto count = fields.integer("top_logprobs", 0, most_logprobs)) {
    if (!request.logprobs && *count > 0) {
      throw bad_field("top_logprobs", "top_logprobs: needs \"logprobs\": true");
    }
    request.top_logprobs = *count;
  }
  const auto options = read_chat_options(fields);
  const Json* messages = fields.find("messages");
  if (fields.find("prompt") != nullptr) {
    throw bad_field("prompt", "prompt: is for /v1/completions; here give messages");
  }
  fields.refuse_others();
  if (messages == nullptr) throw bad_field("messages", "messages: is missing");
  request.ids = encode_messages(served, read_messages(*messages), options);
  check_prompt(served, request, "messages");
  call.requests = {request};
  call.prompt_texts = {""};
  return call;
}

}  // namespace onset
