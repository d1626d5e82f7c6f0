#include "onset/tokenizer/chat.h"

#include <algorithm>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/chat_formats.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

using Names = std::vector<std::string_view>;

const Names user_only = {"user", "assistant"};
const Names with_system = {"system", "user", "assistant"};
const Names with_tools = {"system", "user", "assistant", "tool"};
const Names with_tool_results = {"system", "user", "assistant", "tool", "tool_results"};

const Names reads_prompt = {"add_generation_prompt"};
const Names reads_date = {"add_generation_prompt", "date_string"};
const Names reads_calls = {"add_generation_prompt", "tool_calls"};
const Names reads_tools_not_prompt = {"tools", "tool_calls"};
const Names reads_tools_and_calls = {"add_generation_prompt", "tools", "tool_calls"};
const Names reads_all_of_qwen3 = {"add_generation_prompt", "enable_thinking", "tools", "tool_calls",
                                  "reasoning_content"};

const Names chatml_markers = {"<|im_start|>", "<|im_end|>"};
const Names llama3_markers = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                              "<|eot_id|>"};
const Names bos_and_eos = {"<s>", "</s>"};
const Names inst_markers = {"<s>", "</s>", "[INST]", "[/INST]"};
const Names deepseek_v2_markers = {"<\uFF5Cbegin\u2581of\u2581sentence\uFF5C>",
                                   "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};
const Names deepseek_markers = {"<\uFF5Cbegin\u2581of\u2581sentence\uFF5C>",
                                "<\uFF5Cend\u2581of\u2581sentence\uFF5C>", "<\uFF5CUser\uFF5C>",
                                "<\uFF5CAssistant\uFF5C>"};
const Names phi3_markers = {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"};
const Names phi3_early_markers = {"<s>", "<|user|>", "<|assistant|>", "<|end|>"};
const Names gemma_markers = {"<bos>", "<start_of_turn>", "<end_of_turn>"};

std::vector<ChatRow> chatml_rows() {
  return {
      {{"smollm2", "ChatML with the default system text of SmolLM2", with_system, reads_prompt,
        chatml_markers},
       {"<|im_start|>", "You are a helpful AI assistant named SmolLM"},
       {},
       render_smollm2},
      {{"qwen3", "ChatML with thinking and tools, as Qwen3", with_tools, reads_all_of_qwen3,
        chatml_markers},
       {"<|im_start|>", "enable_thinking", "reasoning_content", "<args-json-object>"},
       {},
       render_qwen3},
      {{"qwen2_5", "ChatML with the system text and tools of Qwen 2.5", with_tools,
        reads_tools_and_calls, chatml_markers},
       {"<|im_start|>", "You are Qwen, created by Alibaba Cloud.", "<args-json-object>"},
       {},
       render_qwen2_5},
      {{"qwen2", "ChatML with the default system text of Qwen 2", with_system, reads_prompt,
        chatml_markers},
       {"<|im_start|>system", "You are a helpful assistant.<|im_end|>"},
       {"Qwen", "tool"},
       render_qwen2},
      {{"chatml", "ChatML without a system text of its own", with_system, reads_prompt,
        chatml_markers},
       {"<|im_start|>", "<|im_end|>", "message['role']", "message['content']"},
       {"You are", "tool", "think", "bos_token", "system", "trim", "strip", "loop."},
       render_chatml},
  };
}

std::vector<ChatRow> llama_rows() {
  return {
      {{"llama3_1_dated", "Llama 3.1 to 3.3 Instruct, with the dates in the system turn",
        with_system, reads_date, llama3_markers},
       {"<|start_header_id|>", "<|eot_id|>", "Cutting Knowledge Date"},
       {},
       render_llama3_1_dated},
      {{"llama3_1", "Llama 3 and 3.1 without the dates", with_system, reads_prompt, llama3_markers},
       {"<|start_header_id|>", "<|eot_id|>"},
       {},
       render_llama3_1},
      {{"llama2", "Llama 2 chat", with_system, Names(), bos_and_eos},
       {"<<SYS>>", "[INST]"},
       {},
       render_llama2},
      {{"mistral_v0_1", "Mistral 7B Instruct v0.1: a space behind every answer", user_only, Names(),
        bos_and_eos},
       {"'[INST] ' + message['content'] + ' [/INST]'", "eos_token + ' '"},
       {},
       render_mistral_v0_1},
      {{"mistral_v0_2", "Mistral 7B Instruct v0.2: no space before and behind an answer", user_only,
        Names(), bos_and_eos},
       {"'[INST] ' + message['content'] + ' [/INST]'"},
       {"eos_token + ' '", "' ' + message"},
       render_mistral_v0_2},
      {{"mistral_v1", "Mistral with spaces around [INST] and a system text in the first turn",
        with_system, Names(), bos_and_eos},
       {R"(" [INST] " + message["content"] + " [/INST]")"},
       {},
       render_mistral_v1},
      {{"mistral_v3", "Mistral 7B Instruct v0.3: a space behind [INST], none before [/INST]",
        with_tool_results, reads_tools_not_prompt, inst_markers},
       {R"("[INST] " + message["content"] + "[/INST]")"},
       {},
       render_mistral_v3},
      {{"mistral_tekken", "Mistral Nemo and later: no spaces around [INST]", with_tool_results,
        reads_tools_not_prompt, inst_markers},
       {R"("[INST]" + message["content"] + "[/INST]")"},
       {},
       render_mistral_tekken},
  };
}

std::vector<ChatRow> other_rows() {
  return {
      {{"deepseek_r1", "DeepSeek-R1 and its distills: earlier thoughts cut, the next one opened",
        with_tools, reads_calls, deepseek_markers},
       {"<\uFF5CUser\uFF5C>", "split('</think>')", "<\uFF5CAssistant\uFF5C><think>"},
       {"is_last_user"},
       render_deepseek_r1},
      {{"deepseek_r1_early", "DeepSeek-R1 as first released: earlier thoughts cut", with_tools,
        reads_calls, deepseek_markers},
       {"<\uFF5CUser\uFF5C>", "split('</think>')"},
       {"is_last_user", "<\uFF5CAssistant\uFF5C><think>"},
       render_deepseek_r1_early},
      {{"deepseek_v3", "DeepSeek-V3", with_tools, reads_calls, deepseek_markers},
       {"<\uFF5CUser\uFF5C>", "<\uFF5CAssistant\uFF5C>"},
       {"think>", "is_last_user"},
       render_deepseek_v3},
      {{"deepseek_v2", "DeepSeek-V2 and DeepSeek LLM", with_system, reads_prompt,
        deepseek_v2_markers},
       {"'User: ' + message['content']", "'Assistant: ' + message['content']"},
       {},
       render_deepseek_v2},
      {{"phi3_early", "Phi-3 as first released: BOS, no system turn", user_only, Names(),
        phi3_early_markers},
       {"<|user|>", "<|end|>", "<|assistant|>", "bos_token"},
       {"<|system|>"},
       render_phi3_early},
      {{"phi3", "Phi-3 and Phi-3.5", with_system, reads_prompt, phi3_markers},
       {"<|system|>", "<|user|>", "<|end|>", "<|assistant|>", "eos_token"},
       {"bos_token", "tool"},
       render_phi3},
      {{"gemma3", "Gemma 3: the system text in the first turn", with_system, reads_prompt,
        gemma_markers},
       {"<start_of_turn>", "<end_of_turn>", "first_user_prefix"},
       {},
       render_gemma3},
      {{"gemma", "Gemma and Gemma 2", user_only, reads_prompt, gemma_markers},
       {"<start_of_turn>", "<end_of_turn>", "System role not supported"},
       {},
       render_gemma},
      {{"olmo2", "OLMo 2 Instruct", with_system, reads_prompt, Names{"<|endoftext|>"}},
       {"bos_token", "<|user|>", "<|assistant|>", "<|system|>", "eos_token"},
       {"<|end|>", "tool"},
       render_olmo2},
  };
}

// In the order in which a template is tried: the dated header also holds what the plain one does.
const std::vector<ChatRow>& chat_rows() {
  static const std::vector<ChatRow> rows = [] {
    std::vector<ChatRow> all = chatml_rows();
    for (const auto& more : {llama_rows(), other_rows()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
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

std::string listed(const Names& values) {
  std::string names;
  for (const auto value : values) names.append(names.empty() ? "" : ", ").append(value);
  return names;
}

bool reads(const ChatFormat& format, std::string_view what) {
  return std::find(format.reads.begin(), format.reads.end(), what) != format.reads.end();
}

std::string readers_of(std::string_view what) {
  Names names;
  for (const auto& row : chat_rows()) {
    if (reads(row.format, what)) names.push_back(row.format.name);
  }
  return listed(names);
}

bool has_calls(const OrderedJson& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

// Content may be missing where a turn holds tool calls instead.
std::string content_of(const OrderedJson& message, const std::string& where) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) {
    require_input(has_calls(message), where, ": has no content");
    return {};
  }
  if (!found->is_string()) {
    throw input_error(str_cat(where, ": content should be a string, is ", found->type_name()),
                      found->is_array() ? "join the texts of its parts into one string" : "");
  }
  return lossy_utf8(found->get_ref<const std::string&>());
}

Messages checked_messages(const ChatRow& row, const OrderedJson& messages) {
  require_input(messages.is_array(), "messages: should be an array, is ", messages.type_name());
  require_input(!messages.empty(), "messages: is empty");
  Messages result;
  for (const auto& message : messages) {
    const std::string where = str_cat("message ", result.size());
    require_input(message.is_object(), where, ": should be an object, is ", message.type_name());
    const auto role = message.find("role");
    require_input(role != message.end() && role->is_string(), where, ": has no role");
    const auto& name = role->get_ref<const std::string&>();
    const auto& roles = row.format.roles;
    require_input(std::find(roles.begin(), roles.end(), name) != roles.end(), where, ": role ",
                  quote(name), " is not known to chat format ", row.format.name, ", which has ",
                  listed(roles));
    require_input(!has_calls(message) || reads(row.format, "tool_calls"), where, ": chat format ",
                  row.format.name, " does not write tool_calls; those that do are ",
                  readers_of("tool_calls"));
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

namespace {

// FNV-1a of the templates of SmolLM2, Qwen3, Llama 3.1 and DeepSeek-V3, whose renderings are the
// fixtures tests/data/tokenizers/*.chat.jsonl, without the white space around them.
constexpr std::uint64_t compared_templates[] = {0x45ec583d4d25bc3a, 0x2bfdb7aa9754484e,
                                                0x0e60067a5537498e, 0xebe3604156dc466a};

std::uint64_t template_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::optional<ChatFormat> recognise_chat_format(std::string_view jinja_template) {
  for (const auto& row : chat_rows()) {
    const auto holds = [&](std::string_view mark) {
      return jinja_template.find(mark) != std::string_view::npos;
    };
    if (std::all_of(row.marks.begin(), row.marks.end(), holds) &&
        std::none_of(row.absent.begin(), row.absent.end(), holds)) {
      return row.format;
    }
  }
  return std::nullopt;
}

ChatFormat chat_format_of(const Tokenizer& tokenizer) {
  const auto& own = tokenizer.chat_template();
  if (const auto format = own ? recognise_chat_format(*own) : std::nullopt) return *format;
  throw input_error(own ? "the model's chat template is not one that onset knows"
                        : "the model comes without a chat template",
                    str_cat("name a format with --chat-format NAME; known are ", known_formats()));
}

std::optional<std::string> chat_template_caution(const Tokenizer& tokenizer) {
  const auto& own = tokenizer.chat_template();
  const auto format = own ? recognise_chat_format(*own) : std::nullopt;
  if (!format) return std::nullopt;
  const std::uint64_t hash = template_hash(trim(*own));
  if (std::find(std::begin(compared_templates), std::end(compared_templates), hash) !=
      std::end(compared_templates)) {
    return std::nullopt;
  }
  return str_cat("the model's chat template bears the marks of ", format->name,
                 " and is rendered as that; it is not a template that onset was compared with, so "
                 "if it was edited, the text may differ from what it writes");
}

std::vector<std::string_view> missing_chat_markers(const ChatFormat& format,
                                                   const Tokenizer& tokenizer) {
  std::vector<std::string_view> missing;
  for (const auto marker : format.markers) {
    const auto ids = tokenizer.encode(marker);
    // Ordinary text that happens to be one token is no marker.
    const bool marks =
        ids.size() == 1 && (tokenizer.is_special(ids.front()) ||
                            tokenizer.encode(marker, {.parse_special = false}) != ids);
    if (!marks) missing.push_back(marker);
  }
  return missing;
}

std::vector<std::string> unread_chat_options(const ChatFormat& format, const OrderedJson& messages,
                                             const ChatOptions& options) {
  const auto reasons = [](const OrderedJson& message) {
    return message.is_object() && message.contains("reasoning_content") &&
           !message["reasoning_content"].is_null();
  };
  const bool reasoned =
      messages.is_array() && std::any_of(messages.begin(), messages.end(), reasons);
  const std::pair<std::string_view, bool> given[] = {
      {"enable_thinking", options.enable_thinking.has_value()},
      {"date_string", options.date_string.has_value()},
      {"tools", !options.tools.empty()},
      {"reasoning_content", reasoned}};
  std::vector<std::string> sentences;
  for (const auto& [name, is_given] : given) {
    if (!is_given || reads(format, name)) continue;
    sentences.push_back(str_cat("chat format ", format.name, " does not read ", name,
                                ", which has no effect; it is read by ", readers_of(name)));
  }
  return sentences;
}

std::string render_chat(const ChatFormat& format, const OrderedJson& messages,
                        const ChatOptions& options) {
  return render_chat_text(format, messages, options).text;
}

ChatText render_chat_text(const ChatFormat& format, const OrderedJson& messages,
                          const ChatOptions& options) {
  const ChatRow& row = row_named(format.name);
  ChatText out;
  row.render(checked_messages(row, messages), options, out);
  return out;
}

ReplyPart said(std::string_view text) {
  ReplyPart part(text);
  part.is_said = true;
  return part;
}

void append_reply(ChatText& out, std::initializer_list<ReplyPart> parts) {
  const std::size_t start = out.text.size();
  for (const auto& part : parts) {
    if (part.is_said) {
      append_said(out, part.text);
    } else {
      out.text.append(part.text);
    }
  }
  out.replies.push_back({start, out.text.size()});
}

void append_said(ChatText& out, std::string_view content) {
  if (content.empty()) return;
  const std::size_t start = out.text.size();
  out.text.append(content);
  out.contents.push_back({start, out.text.size()});
}

std::vector<TokenId> encode_chat(const ChatFormat& format, const Tokenizer& tokenizer,
                                 const ChatText& chat) {
  return tokenizer.encode_literal(chat.text, {chat.contents, format.markers});
}

void require_turns(const Messages& messages, std::size_t from, std::string_view format) {
  for (std::size_t i = from; i < messages.size(); ++i) {
    const std::string_view turn = (i - from) % 2 == 0 ? "user" : "assistant";
    require_input(messages[i].role == turn, "message ", i, ": chat format ", format,
                  " needs user and assistant in turns, a user first");
  }
}

const std::string* first_system(const Messages& messages) {
  return messages.front().role == "system" ? &messages.front().content : nullptr;
}

}  // namespace onset
