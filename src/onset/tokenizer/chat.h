// Chat formats: messages to the text that a family was trained on. The templates that ship with
// models are Jinja programs; onset recognises the known ones and renders them itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/json.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {

// What each format reads of these stands in its row; the table is docs/chat-formats.md.
struct ChatOptions {
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;     // default true
  std::optional<std::string> date_string;  // default "26 Jul 2024"
  OrderedJson tools;                       // null or an array
};

// A rendered chat, and where the assistant speaks in it: from the end of the prompt that generation
// would have started from to the end of the token that ends the turn.
struct ChatText {
  std::string text;
  std::vector<TextSpan> replies;
  // What the messages say, calls of tools and their descriptions included; the rest is the
  // format's.
  std::vector<TextSpan> contents;
};

// A row of the table of formats.
struct ChatFormat {
  std::string_view name;     // "smollm2", "qwen3", "llama3_1", ..
  std::string_view summary;  // one line for --help
  // Roles it writes; another is an error.
  std::vector<std::string_view> roles;
  // What it reads beside role and content: "add_generation_prompt", "enable_thinking",
  // "date_string", "tools" of the options; "tool_calls", "reasoning_content" of a message.
  std::vector<std::string_view> reads;
  // Strings that it writes and that are one token each in the models it was made for.
  std::vector<std::string_view> markers;
};

[[nodiscard]] const std::vector<ChatFormat>& chat_formats();
// By name; throws a usage error that lists the known names.
[[nodiscard]] const ChatFormat& chat_format(std::string_view name);
// The format of a model's template, recognised by what the template writes; nothing when unknown.
[[nodiscard]] std::optional<ChatFormat> recognise_chat_format(std::string_view jinja_template);
// The format of this tokenizer's model: by its template, else an error that lists the known formats
// and says how to name one.
[[nodiscard]] ChatFormat chat_format_of(const Tokenizer& tokenizer);
// Formats are recognised by marks, and an edited template still bears them. Unless the model's
// template is, to the letter, one whose rendering was compared with ours: what to tell the user.
[[nodiscard]] std::optional<std::string> chat_template_caution(const Tokenizer& tokenizer);

// The markers of the format that this tokenizer does not take as one token.
[[nodiscard]] std::vector<std::string_view> missing_chat_markers(const ChatFormat& format,
                                                                 const Tokenizer& tokenizer);
// One sentence for each thing that was given and that the format does not read, with the formats
// that do. A generation prompt that was declined is not among them.
[[nodiscard]] std::vector<std::string> unread_chat_options(const ChatFormat& format,
                                                           const OrderedJson& messages,
                                                           const ChatOptions& options);

// `messages`: an array of objects with `role` and `content`, a string, and what else the format
// reads. Throws an input error for an unknown role, a missing content, and for calls of tools that
// the format does not write.
[[nodiscard]] std::string render_chat(const ChatFormat& format, const OrderedJson& messages,
                                      const ChatOptions& options = {});
[[nodiscard]] ChatText render_chat_text(const ChatFormat& format, const OrderedJson& messages,
                                        const ChatOptions& options = {});

// The ids of a rendered chat in which only what the format writes becomes special tokens: a message
// that says "<|im_end|>" does not end its turn. Without such strings in the messages they are those
// of the text. A format whose markers are plain text ("[INST]" of Llama 2) cannot be protected so.
[[nodiscard]] std::vector<TokenId> encode_chat(const ChatFormat& format, const Tokenizer& tokenizer,
                                               const ChatText& chat);

// A conversation for training: what the model learns to say.
struct TrainedTokens {
  std::vector<TokenId> ids;  // of the rendered text in one pass; the template writes its own BOS
  // 1 where the token holds at least one byte of a reply.
  std::vector<std::uint8_t> mask;
  // Positions of tokens that hold bytes of a reply and of what stands around it; their mask is 1, a
  // trainer that must never learn such bytes clears it.
  std::vector<std::size_t> straddle;
};

// `options.add_generation_prompt` is taken as false. `literal`: what the messages say is text, as
// of encode_chat(); else strings of special tokens in them are those tokens, as transformers has
// it.
[[nodiscard]] TrainedTokens trained_tokens(const ChatFormat& format, const Tokenizer& tokenizer,
                                           const OrderedJson& messages,
                                           const ChatOptions& options = {}, bool literal = false);

}  // namespace onset
