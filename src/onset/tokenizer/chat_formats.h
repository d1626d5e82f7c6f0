// The rows of the table of chat formats, with what renders them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/chat.h"

namespace onset {

struct ChatMessage {
  std::string_view role;
  std::string content;  // valid UTF-8; empty where there is none
  const OrderedJson* source;
};

using Messages = std::vector<ChatMessage>;

struct ChatRow {
  ChatFormat format;
  // Strings that a template of this format holds, all of them, and what it does not hold.
  std::vector<std::string_view> marks;
  std::vector<std::string_view> absent;
  void (*render)(const Messages& messages, const ChatOptions& options, ChatText& out);
};

// A part of a reply: what the format writes, or with said() what the message says.
struct ReplyPart {
  template <typename Text>
  ReplyPart(const Text& written) : text(written) {}  // NOLINT(google-explicit-constructor)
  std::string_view text;
  bool is_said = false;
};
[[nodiscard]] ReplyPart said(std::string_view text);

// Appends what an assistant says, with the token that ends its turn, and notes where it stands.
void append_reply(ChatText& out, std::initializer_list<ReplyPart> parts);
// Appends what a message says, and notes where it stands.
void append_said(ChatText& out, std::string_view content);
// Throws an input error unless users and assistants take turns, a user first.
void require_turns(const Messages& messages, std::size_t from, std::string_view format);
// The content of a first system message, or null.
[[nodiscard]] const std::string* first_system(const Messages& messages);

void render_chatml(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_smollm2(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_qwen2(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_qwen2_5(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_qwen3(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_llama2(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_llama3_1(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_llama3_1_dated(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_mistral_v0_1(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_mistral_v0_2(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_mistral_v1(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_mistral_v3(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_mistral_tekken(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_deepseek_v2(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_deepseek_v3(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_deepseek_r1(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_deepseek_r1_early(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_phi3(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_phi3_early(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_gemma(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_gemma3(const Messages& messages, const ChatOptions& options, ChatText& out);
void render_olmo2(const Messages& messages, const ChatOptions& options, ChatText& out);

}  // namespace onset
