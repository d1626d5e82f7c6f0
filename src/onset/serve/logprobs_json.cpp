#include "onset/serve/logprobs_json.h"

#include <algorithm>
#include <utility>

#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

std::string escaped(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

std::string bytes_of(std::int64_t id, const Tokenizer& tokenizer) {
  return id < tokenizer.vocabulary_size() ? tokenizer.piece_bytes(static_cast<TokenId>(id)) : "";
}

OrderedJson chat_entry(const std::string& bytes, double logprob) {
  OrderedJson numbers = OrderedJson::array();
  for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
  return {{"token", is_valid_utf8(bytes) ? bytes : escaped(bytes)},
          {"logprob", finite_or_null(logprob)},
          {"bytes", numbers}};
}

std::string spelled(const std::string& bytes) {
  return is_valid_utf8(bytes) ? bytes : "bytes:" + escaped(bytes);
}

std::size_t characters(std::string_view bytes) {
  return static_cast<std::size_t>(std::count_if(bytes.begin(), bytes.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

OrderedJson chat_logprobs_json(std::span<const GeneratedToken> tokens, const Tokenizer& tokenizer) {
  OrderedJson content = OrderedJson::array();
  for (const auto& token : tokens) {
    OrderedJson entry = chat_entry(token.bytes, token.logprob);
    OrderedJson tops = OrderedJson::array();
    for (const auto& top : token.top) {
      tops.push_back(chat_entry(bytes_of(top.id, tokenizer), top.logprob));
    }
    entry["top_logprobs"] = tops;
    content.push_back(entry);
  }
  return {{"content", content}, {"refusal", nullptr}};
}

void CompletionLogprobs::add_entry(const GeneratedToken& token, bool is_first) {
  tokens_.push_back(spelled(token.bytes));
  offsets_.push_back(offset_);
  logprobs_.push_back(is_first ? OrderedJson(nullptr) : finite_or_null(token.logprob));
  if (is_first) {
    tops_.push_back(nullptr);
    return;
  }
  // Two tokens may spell the same; the more likely one, which comes first, stands.
  OrderedJson tops = OrderedJson::object();
  for (const auto& top : token.top) {
    const auto name = spelled(bytes_of(top.id, tokenizer_));
    if (!tops.contains(name)) tops[name] = finite_or_null(top.logprob);
  }
  const auto name = spelled(token.bytes);
  if (!tops.contains(name)) tops[name] = finite_or_null(token.logprob);
  tops_.push_back(tops);
}

void CompletionLogprobs::add_prompt(std::span<const GeneratedToken> tokens, std::string_view text) {
  const std::size_t end = offset_ + characters(text);
  bool is_first = true;
  for (const auto& token : tokens) {
    add_entry(token, is_first);
    is_first = false;
    // BOS, and the space that SentencePiece puts before a text, are not in it.
    std::string_view bytes = token.bytes;
    if (!text.starts_with(bytes) && bytes.starts_with(' ') && text.starts_with(bytes.substr(1))) {
      bytes.remove_prefix(1);
    }
    if (!text.starts_with(bytes)) continue;
    text.remove_prefix(bytes.size());
    offset_ += characters(bytes);
  }
  offset_ = end;
}

void CompletionLogprobs::skip(std::string_view text) { offset_ += characters(text); }

void CompletionLogprobs::add(std::span<const GeneratedToken> tokens, bool hides_special) {
  for (const auto& token : tokens) {
    add_entry(token, /*is_first=*/false);
    const bool hidden = hides_special && token.id < tokenizer_.vocabulary_size() &&
                        tokenizer_.is_special(static_cast<TokenId>(token.id));
    if (!hidden) offset_ += characters(token.bytes);
  }
}

OrderedJson CompletionLogprobs::take() {
  const auto moved = [](OrderedJson& array) { return std::exchange(array, OrderedJson::array()); };
  return {{"tokens", moved(tokens_)},
          {"token_logprobs", moved(logprobs_)},
          {"top_logprobs", moved(tops_)},
          {"text_offset", moved(offsets_)}};
}

}  // namespace onset
