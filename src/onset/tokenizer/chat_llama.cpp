// Llama 2, Llama 3 and Mistral.
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
    append_reply(out, {content, end_of_turn});
  } else {
    out.text.append(content).append(end_of_turn);
  }
}

// Llama 2 and Mistral: what a user says stands between [INST] and [/INST]; the versions differ in
// their spaces and in the turn that the system text stands in.
constexpr std::string_view bos = "<s>";
constexpr std::string_view eos = "</s>";

struct InstStyle {
  std::string_view name;
  std::string_view open;
  std::string_view close;
  std::string_view before_reply;
  std::string_view after_reply;  // behind the end-of-turn token
  bool trim_reply = false;
  bool system_in_last = false;  // else in the first turn
};

void render_inst(const Messages& messages, const InstStyle& style, ChatText& out) {
  const std::string* system = first_system(messages);
  const std::size_t from = system != nullptr ? 1 : 0;
  require_turns(messages, from, style.name);
  out.text.append(bos);
  for (std::size_t i = from; i < messages.size(); ++i) {
    const std::string_view content = messages[i].content;
    if (messages[i].role == "assistant") {
      append_reply(out,
                   {style.before_reply, style.trim_reply ? python_strip(content) : content, eos});
      out.text.append(style.after_reply);
      continue;
    }
    const bool here = style.system_in_last ? i + 1 == messages.size() : i == from;
    out.text.append(style.open);
    if (system != nullptr && here) out.text.append(*system).append("\n\n");
    out.text.append(content).append(style.close);
  }
}

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
  if (system != nullptr) out.text.append(python_strip(*system));
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
      append_reply(out, {" ", python_strip(messages[i].content), " ", eos});
      continue;
    }
    std::string content;
    if (system != nullptr && i == from) {
      content.append("<<SYS>>\n").append(*system).append("\n<</SYS>>\n\n");
    }
    content.append(messages[i].content);
    out.text.append(bos).append("[INST] ").append(python_strip(content)).append(" [/INST]");
  }
}

void render_mistral_v0_1(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  render_inst(messages, {"mistral_v0_1", "[INST] ", " [/INST]", "", " "}, out);
}

void render_mistral_v0_2(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  render_inst(messages, {"mistral_v0_2", "[INST] ", " [/INST]", "", ""}, out);
}

void render_mistral_v1(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  render_inst(messages, {"mistral_v1", " [INST] ", " [/INST]", " ", ""}, out);
}

void render_mistral_v3(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  render_inst(messages,
              {"mistral_v3", "[INST] ", "[/INST]", " ", "", /*trim_reply=*/true,
               /*system_in_last=*/true},
              out);
}

void render_mistral_tekken(const Messages& messages, const ChatOptions& /*options*/,
                           ChatText& out) {
  render_inst(messages,
              {"mistral_tekken", "[INST]", "[/INST]", "", "", /*trim_reply=*/false,
               /*system_in_last=*/true},
              out);
}

}  // namespace onset
