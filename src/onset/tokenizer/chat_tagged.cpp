// Phi-3, Gemma and OLMo 2: every turn stands behind a tag with its role.
#include "onset/base/error.h"
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/python_text.h"

namespace onset {
namespace {

void append_gemma_turns(const Messages& messages, std::size_t from, std::string_view prefix,
                        ChatText& out) {
  for (std::size_t i = from; i < messages.size(); ++i) {
    const std::string_view content = python_strip(messages[i].content);
    const bool model = messages[i].role == "assistant";
    out.text.append("<start_of_turn>").append(model ? "model" : "user").append("\n");
    if (i == from) append_said(out, prefix);
    if (model) {
      append_reply(out, {said(content), "<end_of_turn>"});
    } else {
      append_said(out, content);
      out.text.append("<end_of_turn>");
    }
    out.text.append("\n");
  }
}

}  // namespace

void render_phi3(const Messages& messages, const ChatOptions& options, ChatText& out) {
  for (const auto& message : messages) {
    out.text.append("<|").append(message.role).append("|>\n");
    if (message.role == "assistant") {
      append_reply(out, {said(message.content), "<|end|>"});
    } else {
      append_said(out, message.content);
      out.text.append("<|end|>");
    }
    out.text.append("\n");
  }
  out.text.append(options.add_generation_prompt ? "<|assistant|>\n" : "<|endoftext|>");
}

// The assistant's tag ends a user's turn, whether or not an answer is asked for.
void render_phi3_early(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  out.text = "<s>";
  for (const auto& message : messages) {
    if (message.role == "user") {
      out.text.append("<|user|>\n");
      append_said(out, message.content);
      out.text.append("<|end|>\n<|assistant|>\n");
    } else {
      append_reply(out, {said(message.content), "<|end|>"});
      out.text.append("\n");
    }
  }
}

void render_gemma(const Messages& messages, const ChatOptions& options, ChatText& out) {
  require_turns(messages, 0, "gemma");
  out.text = "<bos>";
  append_gemma_turns(messages, 0, "", out);
  if (options.add_generation_prompt) out.text.append("<start_of_turn>model\n");
}

void render_gemma3(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const std::string* system = first_system(messages);
  const std::size_t from = system != nullptr ? 1 : 0;
  require_turns(messages, from, "gemma3");
  out.text = "<bos>";
  append_gemma_turns(messages, from, system != nullptr ? *system + "\n\n" : "", out);
  if (options.add_generation_prompt) out.text.append("<start_of_turn>model\n");
}

void render_olmo2(const Messages& messages, const ChatOptions& options, ChatText& out) {
  constexpr std::string_view end_of_text = "<|endoftext|>";
  out.text = end_of_text;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    out.text.append("<|").append(messages[i].role).append("|>\n");
    const bool last = i + 1 == messages.size();
    if (messages[i].role == "assistant") {
      append_reply(out, {said(messages[i].content), end_of_text});
      if (!last) out.text.append("\n");
    } else {
      append_said(out, messages[i].content);
      out.text.append("\n");
    }
  }
  if (options.add_generation_prompt) out.text.append("<|assistant|>\n");
}

}  // namespace onset
