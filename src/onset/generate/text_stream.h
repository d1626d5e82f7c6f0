// From generated tokens to text, as they come. Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/tokenizer.h"

namespace onset {

// Finds the first of some strings to end in a text that comes in parts, and gives out what cannot
// become part of one any more. However the text is cut into parts, the result is the same.
class StopFinder {
 public:
  // Empty strings are left out.
  explicit StopFinder(std::vector<std::string> stop);

  // The text that is now certain to stand before any stop string.
  [[nodiscard]] std::string push(std::string_view text);
  // What is left at the end of the text.
  [[nodiscard]] std::string finish();
  [[nodiscard]] bool found() const { return found_; }

 private:
  [[nodiscard]] std::size_t held_back() const;

  std::vector<std::string> stop_;
  std::string held_;
  bool found_ = false;
};

// The text of a continuation. All parts together are what Tokenizer::decode() writes for prompt and
// continuation behind what it writes for the prompt (so the space of SentencePiece's first token is
// kept), up to the first stop string. A prompt that ends inside a character is an exception: the
// continuation then begins with U+FFFD.
class TextStream {
 public:
  // `prompt`: its ids; those outside the tokenizer's vocabulary have no text. Special tokens are
  // part of the text with `show_special` alone. The tokenizer must outlive the stream.
  TextStream(const Tokenizer& tokenizer, std::span<const std::int64_t> prompt, bool show_special,
             std::vector<std::string> stop = {});

  // The text that is certain with one token more: whole characters, and nothing that may still
  // become a stop string.
  [[nodiscard]] std::string push(std::int64_t id);
  // What was held back, once there are no more tokens.
  [[nodiscard]] std::string finish();
  // A stop string was found: no more text comes.
  [[nodiscard]] bool stopped() const { return stops_.found(); }

 private:
  [[nodiscard]] bool is_shown(std::int64_t id) const;
  [[nodiscard]] std::string decode_pending() const;

  const Tokenizer* tokenizer_;
  bool show_special_;
  StopFinder stops_;
  // Decoding starts anew behind a token from which the text cannot change any more; `anchor_` then
  // stands for all that came before, so that what decode() does at the start of a text is not done
  // again. Until the text has begun, it is the prompt.
  bool begun_ = false;
  std::vector<TokenId> anchor_;
  std::vector<TokenId> pending_;
};

// A token whose text does not depend on what follows, for TextStream; empty where there is none.
[[nodiscard]] std::vector<TokenId> text_anchor(const Tokenizer& tokenizer);

}  // namespace onset
