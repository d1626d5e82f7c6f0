// ChatML and what SmolLM2, Qwen 2, 2.5 and 3 make of it.
#include "onset/base/error.h"
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/python_text.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr std::string_view start = "<|im_start|>";
constexpr std::string_view end_of_turn = "<|im_end|>";
constexpr std::string_view end = "<|im_end|>\n";
constexpr std::string_view think_end = "</think>";

constexpr std::string_view tools_before =
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
constexpr std::string_view tools_after =
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, "
    "\"arguments\": <args-json-object>}\n</tool_call>";

void append_turn(ChatText& out, std::string_view role, std::string_view content) {
  out.text.append(start).append(role).append("\n");
  append_said(out, content);
  out.text.append(end);
}

void append_message(ChatText& out, const ChatMessage& message) {
  if (message.role != "assistant") {
    append_turn(out, message.role, message.content);
    return;
  }
  out.text.append(start).append("assistant\n");
  append_reply(out, {said(message.content), end_of_turn});
  out.text.append("\n");
}

void append_prompt(ChatText& out, const ChatOptions& options) {
  if (options.add_generation_prompt) out.text.append(start).append("assistant\n");
}

// What an assistant's turn says, and what it thought before.
struct Reply {
  std::string content;
  std::string reasoning;
};

Reply reply_of(const ChatMessage& message) {
  Reply reply{message.content, {}};
  const auto given = message.source->find("reasoning_content");
  if (given != message.source->end() && !given->is_null()) {
    require_input(given->is_string(), "reasoning_content: should be a string, is ",
                  given->type_name());
    reply.reasoning = lossy_utf8(given->get_ref<const std::string&>());
    return reply;
  }
  const std::string_view content = message.content;
  const std::size_t first_end = content.find(think_end);
  if (first_end == std::string_view::npos) return reply;
  constexpr std::string_view think_start = "<think>";
  std::string_view thought = strip_newlines_right(content.substr(0, first_end));
  if (const std::size_t open = thought.rfind(think_start); open != std::string_view::npos) {
    thought.remove_prefix(open + think_start.size());
  }
  reply.reasoning = strip_newlines_left(thought);
  reply.content = strip_newlines_left(content.substr(content.rfind(think_end) + think_end.size()));
  return reply;
}

// A last user's turn that only hands back results of tools does not count as a query.
std::size_t last_query(const Messages& messages) {
  for (std::size_t i = messages.size(); i-- > 0;) {
    const std::string_view content = messages[i].content;
    const bool results =
        content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
    if (messages[i].role == "user" && !results) return i;
  }
  return messages.size() - 1;
}

// `quoted`: arguments that are a string are written as JSON too (Qwen 2.5), not as they are (3).
void append_tool_call(std::string& text, const OrderedJson& given, bool quoted) {
  require_input(given.is_object(), "tool_calls: an entry should be an object, is ",
                given.type_name());
  const auto function = given.find("function");
  const OrderedJson& call =
      function != given.end() && function->is_object() && !function->empty() ? *function : given;
  const auto name = call.find("name");
  const auto arguments = call.find("arguments");
  require_input(name != call.end() && name->is_string(), "tool_calls: an entry has no name");
  require_input(arguments != call.end(), "tool_calls: an entry has no arguments");
  text.append("<tool_call>\n{\"name\": \"").append(lossy_utf8(name->get_ref<const std::string&>()));
  text.append(R"(", "arguments": )");
  text.append(arguments->is_string() && !quoted
                  ? lossy_utf8(arguments->get_ref<const std::string&>())
                  : python_json(*arguments));
  text.append("}\n</tool_call>");
}

// The calls of a turn with a line break between them, and before the first where `newline`.
std::string tool_calls_of(const ChatMessage& message, bool newline, bool quoted) {
  std::string text;
  const auto calls = message.source->find("tool_calls");
  if (calls == message.source->end() || calls->is_null()) return text;
  require_input(calls->is_array(), "tool_calls: should be an array, is ", calls->type_name());
  for (const auto& call : *calls) {
    if (newline) text.append("\n");
    append_tool_call(text, call, quoted);
    newline = true;
  }
  return text;
}

// With thinking off, the prompt itself closes an empty thought.
constexpr std::string_view empty_thought = "<think>\n\n</think>\n\n";

void append_qwen3_reply(ChatText& out, const ChatMessage& message, bool after_query, bool last,
                        bool thinking) {
  const Reply reply = reply_of(message);
  out.text.append(start).append("assistant\n");
  std::string words;
  if (after_query && (last || !reply.reasoning.empty())) {
    const auto thought = strip_newlines_left(strip_newlines_right(reply.reasoning));
    words.append("<think>\n").append(thought).append("\n</think>\n\n");
    words.append(strip_newlines_left(reply.content));
  } else {
    words = reply.content;
  }
  if (!thinking && words.starts_with(empty_thought)) {
    out.text.append(empty_thought);
    words.erase(0, empty_thought.size());
  }
  const std::string calls = tool_calls_of(message, !reply.content.empty(), /*quoted=*/false);
  append_reply(out, {said(words), said(calls), end_of_turn});
  out.text.append("\n");
}

// Results of tools that follow each other share one user's turn.
void append_tool_result(ChatText& out, const Messages& messages, std::size_t i) {
  if (i == 0 || messages[i - 1].role != "tool") out.text.append(start).append("user");
  out.text.append("\n<tool_response>\n");
  append_said(out, messages[i].content);
  out.text.append("\n</tool_response>");
  if (i + 1 == messages.size() || messages[i + 1].role != "tool") out.text.append(end);
}

void append_system(ChatText& out, const std::string* system, const OrderedJson& tools) {
  require_input(tools.is_null() || tools.is_array(), "tools: should be an array, is ",
                tools.type_name());
  if (tools.empty()) {
    if (system != nullptr) append_turn(out, "system", *system);
    return;
  }
  out.text.append(start).append("system\n");
  if (system != nullptr) {
    append_said(out, *system);
    out.text.append("\n\n");
  }
  out.text.append(tools_before);
  for (const auto& tool : tools) {
    out.text.append("\n");
    append_said(out, python_json(tool));
  }
  out.text.append(tools_after).append(end);
}

// Qwen 2.5: a turn without calls is written as it is, one with calls has its own line breaks.
void append_qwen2_5_reply(ChatText& out, const ChatMessage& message) {
  const auto calls = message.source->find("tool_calls");
  if (calls == message.source->end() || calls->empty()) {
    append_message(out, message);
    return;
  }
  out.text.append(start).append("assistant\n");
  const std::string text =
      tool_calls_of(message, /*newline=*/!message.content.empty(), /*quoted=*/true);
  append_reply(out, {said(message.content), said(text), end_of_turn});
  out.text.append("\n");
}

}  // namespace

void render_chatml(const Messages& messages, const ChatOptions& options, ChatText& out) {
  for (const auto& message : messages) append_message(out, message);
  append_prompt(out, options);
}

void render_smollm2(const Messages& messages, const ChatOptions& options, ChatText& out) {
  if (first_system(messages) == nullptr) {
    append_turn(out, "system",
                "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  }
  render_chatml(messages, options, out);
}

void render_qwen2(const Messages& messages, const ChatOptions& options, ChatText& out) {
  if (first_system(messages) == nullptr) {
    append_turn(out, "system", "You are a helpful assistant.");
  }
  render_chatml(messages, options, out);
}

void render_qwen2_5(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const std::string standard =
      "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
  const std::string* system = first_system(messages);
  append_system(out, system != nullptr ? system : &standard, options.tools);
  for (std::size_t i = system != nullptr ? 1 : 0; i < messages.size(); ++i) {
    if (messages[i].role == "assistant") {
      append_qwen2_5_reply(out, messages[i]);
    } else if (messages[i].role == "tool") {
      append_tool_result(out, messages, i);
    } else {
      append_message(out, messages[i]);
    }
  }
  append_prompt(out, options);
}

void render_qwen3(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const std::string* system = first_system(messages);
  append_system(out, system, options.tools);
  const std::size_t query = last_query(messages);
  const bool thinking = options.enable_thinking.value_or(true);
  for (std::size_t i = system != nullptr ? 1 : 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == "assistant") {
      append_qwen3_reply(out, message, i > query, i + 1 == messages.size(), thinking);
    } else if (message.role == "tool") {
      append_tool_result(out, messages, i);
    } else {
      append_message(out, message);
    }
  }
  append_prompt(out, options);
  if (options.add_generation_prompt && !thinking) out.text.append(empty_thought);
}

}  // namespace onset
