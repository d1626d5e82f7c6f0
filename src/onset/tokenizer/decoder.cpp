#include "onset/tokenizer/decoder.h"

#include <algorithm>
#include <utility>

#include "onset/tokenizer/normalizer.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr std::string_view replacement_character = "\uFFFD";

// Bytes that came from byte tokens: every one that is no part of a character becomes U+FFFD, which
// is more of them than lossy_utf8() writes.
void append_byte_run(std::string& out, std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 1;
    while (length < 4 && at + length < bytes.size() && !is_valid_utf8(bytes.substr(at, length))) {
      ++length;
    }
    if (is_valid_utf8(bytes.substr(at, length))) {
      out.append(bytes, at, length);
      at += length;
    } else {
      out += replacement_character;
      ++at;
    }
  }
}

std::string decode_sentencepiece(const Decoder& decoder, std::span<const TokenId> ids,
                                 const Vocabulary& vocabulary) {
  std::string out;
  std::string run;  // bytes that wait for the end of their run
  bool at_start = decoder.strip_first_space;
  for (const TokenId id : ids) {
    std::string_view spelled = vocabulary.bytes(id);
    if (const auto byte = byte_of_piece(spelled); byte && !vocabulary.is_added(id)) {
      run += static_cast<char>(*byte);
      continue;
    }
    append_byte_run(out, std::exchange(run, {}));
    at_start = at_start && out.empty();
    if (at_start && spelled.starts_with(space_symbol)) {
      spelled.remove_prefix(space_symbol.size());
      at_start = decoder.strip_all_spaces;
    }
    append_with_spaces(out, spelled);
  }
  append_byte_run(out, run);
  return out;
}

using Tokens = std::vector<std::string>;

void replace(const DecoderStep& step, Tokens& tokens) {
  NormalizerStep rule;
  rule.kind = NormalizerStep::Kind::replace;
  rule.pattern = step.pattern;
  rule.regex = step.regex;
  rule.text = step.text;
  Normalizer normalizer;
  normalizer.steps.push_back(std::move(rule));
  Normalizer::Scratch scratch;
  for (auto& token : tokens) {
    if (!step.regex && token.find(step.pattern) == std::string::npos) continue;
    token = std::string(normalizer.run(token, /*first=*/false, scratch));
  }
}

void strip(const DecoderStep& step, std::string& token) {
  if (step.pattern.empty()) return;
  for (int i = 0; i < step.left && token.starts_with(step.pattern); ++i) {
    token.erase(0, step.pattern.size());
  }
  for (int i = 0; i < step.right && token.ends_with(step.pattern); ++i) {
    token.resize(token.size() - step.pattern.size());
  }
}

void metaspace(const DecoderStep& step, std::string& token, bool first) {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = token.find(step.pattern); at != std::string::npos;
       at = token.find(step.pattern, copied)) {
    out.append(token, copied, at - copied);
    if (!first || !step.drop_first) out += ' ';
    copied = at + step.pattern.size();
  }
  out.append(token, copied);
  token = std::move(out);
}

// Runs of byte tokens become their text, or one U+FFFD for every byte when they are no UTF-8.
Tokens byte_fallback(const Tokens& tokens) {
  Tokens result;
  std::string run;
  const auto flush = [&] {
    if (run.empty()) return;
    if (is_valid_utf8(run)) {
      result.push_back(run);
    } else {
      result.insert(result.end(), run.size(), std::string(replacement_character));
    }
    run.clear();
  };
  for (const auto& token : tokens) {
    if (const auto byte = byte_of_piece(token)) {
      run += static_cast<char>(*byte);
    } else {
      flush();
      result.push_back(token);
    }
  }
  flush();
  return result;
}

std::string joined(const Tokens& tokens) {
  std::string text;
  for (const auto& token : tokens) text += token;
  return text;
}

void apply(const DecoderStep& step, Tokens& tokens) {
  using Kind = DecoderStep::Kind;
  switch (step.kind) {
    case Kind::replace:
      replace(step, tokens);
      break;
    case Kind::byte_fallback:
      tokens = byte_fallback(tokens);
      break;
    case Kind::fuse:
      tokens = {joined(tokens)};
      break;
    case Kind::strip:
      for (auto& token : tokens) strip(step, token);
      break;
    case Kind::metaspace:
      for (std::size_t i = 0; i < tokens.size(); ++i) metaspace(step, tokens[i], i == 0);
      break;
  }
}

}  // namespace

void append_with_spaces(std::string& out, std::string_view spelled) {
  while (!spelled.empty()) {
    const std::size_t at = std::min(spelled.find(space_symbol), spelled.size());
    out.append(spelled.substr(0, at));
    if (at == spelled.size()) return;
    out += ' ';
    spelled.remove_prefix(at + space_symbol.size());
  }
}

std::string Decoder::decode(std::span<const TokenId> ids, const Vocabulary& vocabulary) const {
  std::string text;
  if (kind == Kind::byte_level) {
    for (const TokenId id : ids) text += vocabulary.bytes(id);
    return is_valid_utf8(text) ? text : lossy_utf8(text);
  }
  if (kind == Kind::sentencepiece) return decode_sentencepiece(*this, ids, vocabulary);
  Tokens tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    const auto row =
        std::lower_bound(rewritten.begin(), rewritten.end(), id,
                         [](const auto& r, TokenId wanted) { return r.first < wanted; });
    const bool found = row != rewritten.end() && row->first == id;
    tokens.emplace_back(found ? std::string_view(row->second) : vocabulary.bytes(id));
  }
  for (const auto& step : steps) apply(step, tokens);
  if (!join_with_spaces) return joined(tokens);
  for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, 1, ' ');
  return joined(tokens);
}

bool Decoder::is_byte(TokenId id, const Vocabulary& vocabulary) const {
  bool fallback = kind == Kind::sentencepiece;
  for (const auto& step : steps) fallback |= step.kind == DecoderStep::Kind::byte_fallback;
  return fallback && byte_of_piece(vocabulary.bytes(id)) && !vocabulary.is_added(id);
}

std::string Decoder::piece_bytes(TokenId id, const Vocabulary& vocabulary) const {
  const std::string_view bytes = vocabulary.bytes(id);
  if (kind == Kind::byte_level) return std::string(bytes);
  if (is_byte(id, vocabulary)) {
    std::string one;
    one += static_cast<char>(*byte_of_piece(bytes));
    return one;
  }
  if (kind == Kind::sentencepiece) {
    std::string out;
    append_with_spaces(out, bytes);
    return out;
  }
  // What depends on the place of a token, stripping and the first token's own rule, is left out.
  Tokens tokens = {"", std::string(bytes)};
  for (const auto& step : steps) {
    const bool by_place =
        step.kind == DecoderStep::Kind::strip || step.kind == DecoderStep::Kind::fuse;
    if (!by_place) apply(step, tokens);
  }
  return joined(tokens);
}

}  // namespace onset
