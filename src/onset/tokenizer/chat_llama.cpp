// Llama 2 and Llama 3.
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/python_text.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// Llama 3: a header with the role, the trimmed content, and the end-of-turn token.
constexpr std::string_view end_of_turn = "<|eot_id|>";
constexpr std::string_view default_date = "26 Jul 2024";

void append_header(std::string& text, std::string_view role) {
  text.append("<|start_header_id|>").append(role).append("<|end_header_id|>\n\n");
}

void append_turn(ChatText& out, const ChatMessage& message) {
  append_header(out.text, message.role);
  const std::string_view content = python_strip(message.content);
  if (message.role == "assistant") {
    append_reply(out, {said(content), end_of_turn});
  } else {
    append_said(out, content);
    out.text.append(end_of_turn);
  }
}

constexpr std::string_view bos = "<s>";
constexpr std::string_view eos = "</s>";

}  // namespace

void render_llama3_1(const Messages& messages, const ChatOptions& options, ChatText& out) {
  out.text = "<|begin_of_text|>";
  for (const auto& message : messages) append_turn(out, message);
  if (options.add_generation_prompt) append_header(out.text, "assistant");
}

void render_llama3_1_dated(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const std::string* system = first_system(messages);
  const std::string date = lossy_utf8(options.date_string.value_or(std::string(default_date)));
  out.text = "<|begin_of_text|>";
  append_header(out.text, "system");
  out.text.append("Cutting Knowledge Date: December 2023\nToday Date: ")
      .append(date)
      .append("\n\n");
  if (system != nullptr) append_said(out, python_strip(*system));
  out.text.append(end_of_turn);
  for (std::size_t i = system != nullptr ? 1 : 0; i < messages.size(); ++i) {
    append_turn(out, messages[i]);
  }
  if (options.add_generation_prompt) append_header(out.text, "assistant");
}

void render_llama2(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  const std::string* system = first_system(messages);
  const std::size_t from = system != nullptr ? 1 : 0;
  require_turns(messages, from, "llama2");
  for (std::size_t i = from; i < messages.size(); ++i) {
    if (messages[i].role == "assistant") {
      append_reply(out, {" ", said(python_strip(messages[i].content)), " ", eos});
      continue;
    }
    std::string content;
    if (system != nullptr && i == from) {
      content.append("<<SYS>>\n").append(*system).append("\n<</SYS>>\n\n");
    }
    content.append(messages[i].content);
    out.text.append(bos).append("[INST] ");
    append_said(out, python_strip(content));
    out.text.append(" [/INST]");
  }
}

}  // namespace onset
