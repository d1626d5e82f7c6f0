// The rows of the table of chat formats, with what renders them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/chat.h"

namespace onset {

struct ChatMessage {
  std::string_view role;
  std::string content;  // valid UTF-8
  const OrderedJson* source;
};

struct ChatRow {
  ChatFormat format;
  // Roles it writes; another is an error.
  std::vector<std::string_view> roles;
  // Strings that a template of this format holds, all of them, and no other format's does.
  std::vector<std::string_view> marks;
  std::string (*render)(const std::vector<ChatMessage>& messages, const ChatOptions& options);
};

[[nodiscard]] std::string render_smollm2(const std::vector<ChatMessage>& messages,
                                         const ChatOptions& options);
[[nodiscard]] std::string render_qwen3(const std::vector<ChatMessage>& messages,
                                       const ChatOptions& options);
[[nodiscard]] std::string render_llama3_1(const std::vector<ChatMessage>& messages,
                                          const ChatOptions& options);
[[nodiscard]] std::string render_llama3_1_dated(const std::vector<ChatMessage>& messages,
                                                const ChatOptions& options);

}  // namespace onset
