// Mistral: what a user says stands between [INST] and [/INST]; the versions differ in their spaces,
// in the turn that the system text stands in, and in whether they know tools.
#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/python_text.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr std::string_view bos = "<s>";
constexpr std::string_view eos = "</s>";

struct InstStyle {
  std::string_view name;
  std::string_view open;
  std::string_view close;
  std::string_view before_reply;
  std::string_view after_reply;  // behind the end-of-turn token
};

// Without tools; the system text in the first turn.
void render_inst(const Messages& messages, const InstStyle& style, ChatText& out) {
  const std::string* system = first_system(messages);
  const std::size_t from = system != nullptr ? 1 : 0;
  require_turns(messages, from, style.name);
  out.text.append(bos);
  for (std::size_t i = from; i < messages.size(); ++i) {
    if (messages[i].role == "assistant") {
      append_reply(out, {style.before_reply, said(messages[i].content), eos});
      out.text.append(style.after_reply);
      continue;
    }
    out.text.append(style.open);
    if (system != nullptr && i == from) append_said(out, *system + "\n\n");
    append_said(out, messages[i].content);
    out.text.append(style.close);
  }
}

// v0.3 and later: tools before the last user's turn, the system text in it if it is the last turn.
struct ToolStyle {
  std::string_view name;
  std::string_view space;  // behind [INST], the tags of tools, and before a reply
  bool trim_reply;
};

const OrderedJson* calls_of(const ChatMessage& message) {
  if (message.role != "assistant") return nullptr;
  const auto calls = message.source->find("tool_calls");
  if (calls == message.source->end() || !calls->is_array() || calls->empty()) return nullptr;
  return &*calls;
}

bool is_tool_result(const ChatMessage& message) {
  return message.role == "tool" || message.role == "tool_results";
}

// Users and assistants take turns; calls of tools and their results stand between them uncounted.
void require_turns_beside_tools(const Messages& messages, std::size_t from,
                                std::string_view format) {
  std::size_t count = 0;
  for (std::size_t i = from; i < messages.size(); ++i) {
    if (is_tool_result(messages[i]) || calls_of(messages[i]) != nullptr) continue;
    const std::string_view turn = count++ % 2 == 0 ? "user" : "assistant";
    require_input(messages[i].role == turn, "message ", i, ": chat format ", format,
                  " needs user and assistant in turns, a user first");
  }
}

const OrderedJson& function_of(const OrderedJson& value, const char* where) {
  const auto function = value.is_object() ? value.find("function") : value.end();
  require_input(value.is_object() && function != value.end() && function->is_object(), where,
                ": an entry has no object \"function\"");
  return *function;
}

// The id of a call: the template refuses others than those of nine characters.
std::string call_id(const OrderedJson& value, const char* key) {
  const auto found = value.find(key);
  require_input(found != value.end() && found->is_string(), "tool_calls: \"", key,
                "\" is missing; Mistral's are nine letters and digits");
  std::string id = lossy_utf8(found->get_ref<const std::string&>());
  const auto characters = std::count_if(id.begin(), id.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  });
  require_input(characters == 9, "tool_calls: \"", key, "\" is ", quote(id, 40),
                "; Mistral's are nine letters and digits");
  return id;
}

// Texts are written as they are, without escapes: as the template does.
std::string tool_text(const OrderedJson& tool) {
  std::string text = R"({"type": "function", "function": {)";
  bool first = true;
  for (const auto& [key, value] : function_of(tool, "tools").items()) {
    if (key == "return") continue;
    text.append(first ? "\"" : ", \"").append(lossy_utf8(key)).append("\": ");
    first = false;
    if (value.is_string()) {
      text.append("\"").append(lossy_utf8(value.get_ref<const std::string&>())).append("\"");
    } else {
      text.append(python_json(value));
    }
  }
  return text + "}}";
}

std::string calls_text(const OrderedJson& calls) {
  std::string text;
  for (const auto& call : calls) {
    std::string function = python_json(function_of(call, "tool_calls"));
    function.pop_back();  // its brace: the id follows within
    text.append(text.empty() ? "" : ", ").append(function);
    text.append(R"(, "id": ")").append(call_id(call, "id")).append("\"}");
  }
  return text;
}

class ToolWriter {
 public:
  ToolWriter(const ToolStyle& style, const OrderedJson& tools, ChatText& out)
      : style_(style), out_(out) {
    require_input(tools.is_null() || tools.is_array(), "tools: should be an array, is ",
                  tools.type_name());
    for (const auto& tool : tools) {
      tools_.append(tools_.empty() ? "" : ", ").append(tool_text(tool));
    }
  }

  void run(const Messages& messages) {
    const std::string* system = first_system(messages);
    const std::size_t from = system != nullptr ? 1 : 0;
    require_turns_beside_tools(messages, from, style_.name);
    const ChatMessage* last_user = nullptr;
    for (const auto& message : messages) {
      if (message.role == "user") last_user = &message;
    }
    out_.text.append(bos);
    for (std::size_t i = from; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      if (message.role == "user") {
        // The template compares by value: a turn that says the same as the last has the tools too.
        if (*message.source == *last_user->source) append_tools();
        out_.text.append("[INST]").append(style_.space);
        if (system != nullptr && i + 1 == messages.size()) append_said(out_, *system + "\n\n");
        append_said(out_, message.content);
        out_.text.append("[/INST]");
      } else if (const OrderedJson* calls = calls_of(message)) {
        append_reply(out_, {"[TOOL_CALLS]", style_.space, "[", said(calls_text(*calls)), "]", eos});
      } else if (message.role == "assistant") {
        const std::string_view content = message.content;
        append_reply(
            out_, {style_.space, said(style_.trim_reply ? python_strip(content) : content), eos});
      } else {
        append_result(message);
      }
    }
  }

 private:
  void append_tools() {
    if (tools_.empty()) return;
    out_.text.append("[AVAILABLE_TOOLS]").append(style_.space).append("[");
    append_said(out_, tools_);
    out_.text.append("][/AVAILABLE_TOOLS]");
  }

  void append_result(const ChatMessage& message) {
    out_.text.append("[TOOL_RESULTS]").append(style_.space).append(R"({"content": )");
    append_said(out_, message.content);
    out_.text.append(R"(, "call_id": ")");
    append_said(out_, call_id(*message.source, "tool_call_id"));
    out_.text.append("\"}[/TOOL_RESULTS]");
  }

  const ToolStyle& style_;
  ChatText& out_;
  std::string tools_;  // all of them, between commas
};

}  // namespace

void render_mistral_v0_1(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  render_inst(messages, {"mistral_v0_1", "[INST] ", " [/INST]", "", " "}, out);
}

void render_mistral_v0_2(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  render_inst(messages, {"mistral_v0_2", "[INST] ", " [/INST]", "", ""}, out);
}

void render_mistral_v1(const Messages& messages, const ChatOptions& /*options*/, ChatText& out) {
  render_inst(messages, {"mistral_v1", " [INST] ", " [/INST]", " ", ""}, out);
}

void render_mistral_v3(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const ToolStyle style{.name = "mistral_v3", .space = " ", .trim_reply = true};
  ToolWriter(style, options.tools, out).run(messages);
}

void render_mistral_tekken(const Messages& messages, const ChatOptions& options, ChatText& out) {
  const ToolStyle style{.name = "mistral_tekken", .space = "", .trim_reply = false};
  ToolWriter(style, options.tools, out).run(messages);
}

}  // namespace onset
