// Llama 3: a header with the role, the trimmed content, and the end-of-turn token.
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/python_text.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr std::string_view bos = "<|begin_of_text|>";
constexpr std::string_view end_of_turn = "<|eot_id|>";
constexpr std::string_view default_date = "26 Jul 2024";

void append_header(std::string& text, std::string_view role) {
  text.append("<|start_header_id|>").append(role).append("<|end_header_id|>\n\n");
}

void append_turn(std::string& text, const ChatMessage& message) {
  append_header(text, message.role);
  text.append(python_strip(message.content)).append(end_of_turn);
}

}  // namespace

std::string render_llama3_1(const std::vector<ChatMessage>& messages, const ChatOptions& options) {
  std::string text(bos);
  for (const auto& message : messages) append_turn(text, message);
  if (options.add_generation_prompt) append_header(text, "assistant");
  return text;
}

std::string render_llama3_1_dated(const std::vector<ChatMessage>& messages,
                                  const ChatOptions& options) {
  const bool has_system = messages.front().role == "system";
  const std::string date = lossy_utf8(options.date_string.value_or(std::string(default_date)));
  std::string text(bos);
  append_header(text, "system");
  text.append("Cutting Knowledge Date: December 2023\nToday Date: ").append(date).append("\n\n");
  if (has_system) text.append(python_strip(messages.front().content));
  text.append(end_of_turn);
  for (std::size_t i = has_system ? 1 : 0; i < messages.size(); ++i) append_turn(text, messages[i]);
  if (options.add_generation_prompt) append_header(text, "assistant");
  return text;
}

}  // namespace onset
