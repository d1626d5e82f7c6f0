// Tokens back to text: the decoder part of tokenizer.json as a list of steps, and the rule of
// SentencePiece.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onset/tokenizer/regex.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/tokenizer/vocabulary.h"

namespace onset {

struct DecoderStep {
  enum class Kind {
    replace,        // `pattern` (or the regex) by `text` in every token
    byte_fallback,  // "<0x0A>" is a byte; bytes that are no UTF-8 become U+FFFD, each of them
    fuse,           // all tokens become one
    strip,      // up to `left` times `pattern` from the start of every token, `right` at its end
    metaspace,  // `pattern` is a space, and nothing in the first token with `drop_first`
  };
  Kind kind = Kind::fuse;
  std::string pattern;
  std::optional<Regex> regex;
  std::string text;
  int left = 0;
  int right = 0;
  bool drop_first = false;
};

// Appends a piece with its space symbols as spaces.
void append_with_spaces(std::string& out, std::string_view spelled);

struct Decoder {
  enum class Kind {
    byte_level,     // the bytes of all tokens joined
    sentencepiece,  // space_symbol is a space, "<0x0A>" a byte
    steps,
  };
  Kind kind = Kind::byte_level;
  std::vector<DecoderStep> steps;
  // Tokens that decode to something else than their piece: those found in the normalised text are
  // written as they were found. Sorted by id.
  std::vector<std::pair<TokenId, std::string>> rewritten;
  bool join_with_spaces = false;  // a tokenizer.json without a decoder
  // SentencePiece: the space that was put before the text is taken away; with
  // `strip_all_spaces`, all spaces there.
  bool strip_first_space = false;
  bool strip_all_spaces = false;

  // `ids` are in the vocabulary. Valid UTF-8.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids,
                                   const Vocabulary& vocabulary) const;
  // Whether the token is one byte of what byte fallback joins.
  [[nodiscard]] bool is_byte(TokenId id, const Vocabulary& vocabulary) const;
  // The bytes of a token that stands inside a text.
  [[nodiscard]] std::string piece_bytes(TokenId id, const Vocabulary& vocabulary) const;
};

}  // namespace onset
