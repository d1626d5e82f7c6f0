#include "onset/tokenizer/chat.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// In the order in which a template is tried: the dated header also holds what the plain one does.
const std::vector<ChatRow>& chat_rows() {
  static const std::vector<ChatRow> rows = {
      {{"smollm2", "ChatML with the default system text of SmolLM2"},
       {"system", "user", "assistant"},
       {"<|im_start|>", "You are a helpful AI assistant named SmolLM"},
       render_smollm2},
      {{"qwen3", "ChatML with thinking and tools, as Qwen3"},
       {"system", "user", "assistant", "tool"},
       {"<|im_start|>", "enable_thinking", "reasoning_content", "<args-json-object>"},
       render_qwen3},
      {{"llama3_1_dated", "Llama 3.1 to 3.3 Instruct, with the dates in the system turn"},
       {"system", "user", "assistant"},
       {"<|start_header_id|>", "<|eot_id|>", "Cutting Knowledge Date"},
       render_llama3_1_dated},
      {{"llama3_1", "Llama 3 and 3.1 without the dates"},
       {"system", "user", "assistant"},
       {"<|start_header_id|>", "<|eot_id|>"},
       render_llama3_1},
  };
  return rows;
}

std::string known_formats() {
  std::string names;
  for (const auto& row : chat_rows()) {
    if (!names.empty()) names += ", ";
    names += row.format.name;
  }
  return names;
}

const ChatRow& row_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& row : chat_rows()) {
    if (row.format.name == name) return row;
    names.emplace_back(row.format.name);
  }
  const std::string near = did_you_mean(nearest(name, names));
  throw usage_error(
      str_cat("chat format ", quote(name), " is not known; known are ", known_formats()), near);
}

std::string roles_of(const ChatRow& row) {
  std::string names;
  for (const auto role : row.roles) {
    if (!names.empty()) names += ", ";
    names += role;
  }
  return names;
}

// Content may be missing where a turn holds tool calls instead.
std::string content_of(const OrderedJson& message, const std::string& where) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) {
    const auto calls = message.find("tool_calls");
    const bool called = calls != message.end() && calls->is_array() && !calls->empty();
    require_input(called, where, ": has no content");
    return {};
  }
  require_input(found->is_string(), where, ": content should be a string, is ", found->type_name());
  return lossy_utf8(found->get_ref<const std::string&>());
}

std::vector<ChatMessage> checked_messages(const ChatRow& row, const OrderedJson& messages) {
  require_input(messages.is_array(), "messages: should be an array, is ", messages.type_name());
  require_input(!messages.empty(), "messages: is empty");
  std::vector<ChatMessage> result;
  for (const auto& message : messages) {
    const std::string where = str_cat("message ", result.size());
    require_input(message.is_object(), where, ": should be an object, is ", message.type_name());
    const auto role = message.find("role");
    require_input(role != message.end() && role->is_string(), where, ": has no role");
    const auto& name = role->get_ref<const std::string&>();
    require_input(std::find(row.roles.begin(), row.roles.end(), name) != row.roles.end(), where,
                  ": role ", quote(name), " is not known to chat format ", row.format.name,
                  ", which has ", roles_of(row));
    result.push_back({name, content_of(message, where), &message});
  }
  return result;
}

}  // namespace

const std::vector<ChatFormat>& chat_formats() {
  static const std::vector<ChatFormat> formats = [] {
    std::vector<ChatFormat> result;
    for (const auto& row : chat_rows()) result.push_back(row.format);
    return result;
  }();
  return formats;
}

const ChatFormat& chat_format(std::string_view name) { return row_named(name).format; }

std::optional<ChatFormat> recognise_chat_format(std::string_view jinja_template) {
  for (const auto& row : chat_rows()) {
    const bool all = std::all_of(row.marks.begin(), row.marks.end(), [&](std::string_view mark) {
      return jinja_template.find(mark) != std::string_view::npos;
    });
    if (all) return row.format;
  }
  return std::nullopt;
}

ChatFormat chat_format_of(const Tokenizer& tokenizer) {
  const auto& own = tokenizer.chat_template();
  if (const auto format = own ? recognise_chat_format(*own) : std::nullopt) return *format;
  throw input_error(own ? "the model's chat template is not one that onset knows"
                        : "the model comes without a chat template",
                    str_cat("name a format with --chat-format; known are ", known_formats()));
}

std::string render_chat(const ChatFormat& format, const OrderedJson& messages,
                        const ChatOptions& options) {
  const ChatRow& row = row_named(format.name);
  return row.render(checked_messages(row, messages), options);
}

}  // namespace onset
