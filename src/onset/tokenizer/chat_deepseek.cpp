// DeepSeek-V2, DeepSeek-V3, and R1 with its distills.
#include "onset/base/error.h"
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr std::string_view bos = "<\uFF5Cbegin\u2581of\u2581sentence\uFF5C>";
constexpr std::string_view eos = "<\uFF5Cend\u2581of\u2581sentence\uFF5C>";
constexpr std::string_view user_tag = "<\uFF5CUser\uFF5C>";
constexpr std::string_view assistant_tag = "<\uFF5CAssistant\uFF5C>";
constexpr std::string_view think_end = "</think>";

// The parts of a special token's name are joined by U+2581.
std::string tool_tag(std::string_view what) {
  return "<\uFF5Ctool\u2581" + std::string(what) + "\uFF5C>";
}
const std::string calls_begin = tool_tag("calls\u2581begin");
const std::string calls_end = tool_tag("calls\u2581end");
const std::string call_begin = tool_tag("call\u2581begin");
const std::string call_end = tool_tag("call\u2581end");
const std::string separator = tool_tag("sep");
const std::string outputs_begin = tool_tag("outputs\u2581begin");
const std::string outputs_end = tool_tag("outputs\u2581end");
const std::string output_begin = tool_tag("output\u2581begin");
const std::string output_end = tool_tag("output\u2581end");

std::string text_member(const OrderedJson& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  require_input(object.is_object() && found != object.end() && found->is_string(),
                "tool_calls: an entry has no string \"", key, "\"");
  return lossy_utf8(found->get_ref<const std::string&>());
}

void append_call(ChatText& out, const OrderedJson& call) {
  const std::string type = text_member(call, "type");
  const auto function = call.find("function");
  require_input(function != call.end(), "tool_calls: an entry has no \"function\"");
  out.text.append(call_begin);
  append_said(out, type);
  out.text.append(separator);
  append_said(out, text_member(*function, "name"));
  out.text.append("\n```json\n");
  append_said(out, text_member(*function, "arguments"));
  out.text.append("\n```").append(call_end);
}

bool has_content(const ChatMessage& message) {
  const auto content = message.source->find("content");
  return content != message.source->end() && !content->is_null();
}

struct Style {
  bool joins_systems = true;  // else the last one stands
  bool cuts_thoughts = false;
  std::string_view prompt_end;  // what the prompt opens the answer with
};

// The template's own state over the turns. Odd as it is, it is what the model was given: the end of
// a list of calls is written behind its second and later ones only.
class Writer {
 public:
  Writer(const Style& style, ChatText& out) : style_(style), out_(out) {}

  void run(const Messages& messages, bool prompt) {
    out_.text.append(bos);
    append_said(out_, system_of(messages));
    for (const auto& message : messages) {
      if (message.role == "user") {
        after_tool_ = false;
        out_.text.append(user_tag);
        append_said(out_, message.content);
      } else if (message.role == "assistant") {
        append_assistant(message);
      } else if (message.role == "tool") {
        append_output(message.content);
      }
    }
    if (after_tool_) {
      out_.text.append(outputs_end);
    } else if (prompt) {
      out_.text.append(assistant_tag).append(style_.prompt_end);
    }
  }

 private:
  [[nodiscard]] std::string system_of(const Messages& messages) const {
    std::string text;
    bool first = true;
    for (const auto& message : messages) {
      if (message.role != "system") continue;
      if (!style_.joins_systems) {
        text = message.content;
      } else {
        text.append(first ? "" : "\n\n").append(message.content);
      }
      first = false;
    }
    return text;
  }

  void append_assistant(const ChatMessage& message) {
    if (!has_content(message)) {
      append_calls(*message.source->find("tool_calls"));
      return;
    }
    std::string_view content = message.content;
    if (after_tool_) {
      out_.text.append(outputs_end);
      after_tool_ = false;
    } else {
      out_.text.append(assistant_tag);
      const std::size_t thought = content.rfind(think_end);
      if (style_.cuts_thoughts && thought != std::string_view::npos) {
        content.remove_prefix(thought + think_end.size());
      }
    }
    append_reply(out_, {said(content), eos});
  }

  void append_calls(const OrderedJson& calls) {
    after_tool_ = false;
    if (!called_ && !calls.empty()) out_.text.append(assistant_tag);
    const std::size_t start = out_.text.size();
    const bool tagged = called_;
    for (const auto& call : calls) {
      if (!called_) {
        out_.text.append(calls_begin);
        append_call(out_, call);
        called_ = true;
      } else {
        out_.text.append("\n");
        append_call(out_, call);
        out_.text.append(calls_end).append(eos);
      }
    }
    if (tagged || out_.text.size() > start) out_.replies.push_back({start, out_.text.size()});
  }

  void append_output(std::string_view content) {
    after_tool_ = true;
    out_.text.append(answered_ ? "\n" : outputs_begin).append(output_begin);
    append_said(out_, content);
    out_.text.append(output_end);
    answered_ = true;
  }

  const Style& style_;
  ChatText& out_;
  bool after_tool_ = false;
  bool called_ = false;
  bool answered_ = false;
};

}  // namespace

void render_deepseek_v2(const Messages& messages, const ChatOptions& options, ChatText& out) {
  out.text.append(bos);
  for (const auto& message : messages) {
    if (message.role == "user") {
      out.text.append("User: ");
      append_said(out, message.content);
      out.text.append("\n\n");
    } else if (message.role == "system") {
      append_said(out, message.content);
      out.text.append("\n\n");
    } else {
      // The prompt ends before the space.
      out.text.append("Assistant:");
      append_reply(out, {" ", said(message.content), eos});
    }
  }
  if (options.add_generation_prompt) out.text.append("Assistant:");
}

void render_deepseek_v3(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const Style style;
  Writer(style, out).run(messages, options.add_generation_prompt);
}

void render_deepseek_r1(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const Style style{/*joins_systems=*/false, /*cuts_thoughts=*/true, "<think>\n"};
  Writer(style, out).run(messages, options.add_generation_prompt);
}

void render_deepseek_r1_early(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const Style style{/*joins_systems=*/false, /*cuts_thoughts=*/true, ""};
  Writer(style, out).run(messages, options.add_generation_prompt);
}

}  // namespace onset
