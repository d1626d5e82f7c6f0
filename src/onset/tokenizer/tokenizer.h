// Text to token ids and back, equal to the model's own tokenizer to the last id.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

using TokenId = std::int32_t;

struct EncodeOptions {
  // Strings of added tokens ("<|im_start|>") in the text become those tokens; false takes them as
  // ordinary text.
  bool parse_special = true;
  // Adds what the tokenizer's configuration adds around a text (BOS of Llama; nothing for Qwen).
  bool add_special = false;
};

struct DecodeOptions {
  bool skip_special = false;
};

// What the tokenizer's own configuration puts around a text, for reports: silent BOS is a common
// fault, so every result says what was added.
struct SpecialPolicy {
  std::optional<TokenId> bos;  // the BOS token, where the vocabulary has one
  bool add_bos = false;        // and whether it is put before a text
  std::vector<TokenId> eos;    // tokens that end generation
  // The one that ends a text when a model is trained (eos_token of tokenizer_config.json), else the
  // first of `eos`.
  std::optional<TokenId> end_of_text;
  bool add_eos = false;
};

// Bytes [start, end) of a text.
struct TextSpan {
  std::size_t start;
  std::size_t end;
  bool operator==(const TextSpan&) const = default;
};

// Tokens, and how much of each lies in given stretches of the text.
struct CoveredTokens {
  enum class Coverage : std::uint8_t { none, part, all };

  std::vector<TokenId> ids;
  std::vector<Coverage> coverage;  // one a token
};

// Stretches of a text that somebody wrote: the strings of special tokens in them are text like
// other. Added tokens that are not special ("<think>", runs of spaces) are found there as
// elsewhere.
struct LiteralText {
  std::span<const TextSpan> spans;                 // ascending, without overlap
  std::span<const std::string_view> markers = {};  // further added tokens that are text there
};

class Tokenizer {
 public:
  // `path`: a folder, or a file in one. Of the files in a folder the first of these is taken:
  //   tokenizer.json                          byte-level BPE, or BPE of characters
  //   tokenizer.model                         SentencePiece, model type BPE (Llama 2, Mistral)
  //   vocab.json with merges.txt, or
  //   encoder.json with vocab.bpe             GPT-2
  // with what tokenizer_config.json, config.json, generation_config.json, added_tokens.json and
  // chat_template.jinja beside it say, all of them optional; or a GGUF file with its vocabulary
  // (kinds gpt2 and llama).
  // SentencePiece puts a space before a text. Behind a special token inside a text another one is
  // put (the old rule, also that of llama.cpp), unless tokenizer_config.json says "legacy": false;
  // a tokenizer.json says so itself. With EncodeOptions::parse_special off the ids are
  // SentencePiece's own: control pieces never come from text.
  // Throws an input error that names the file and the part that is not known.
  static Tokenizer open(const std::filesystem::path& path);

  // `text` may hold any bytes; invalid UTF-8 is taken as U+FFFD, as the reference tokenizers do.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            const EncodeOptions& options = {}) const;
  // As encode() with parse_special, for a text that is valid UTF-8. A special token that holds a
  // byte of a literal stretch is not one.
  [[nodiscard]] std::vector<TokenId> encode_literal(std::string_view text,
                                                    const LiteralText& literal) const;
  // As encode(), for a text that is valid UTF-8. `spans` ascend and do not overlap. A token that
  // the tokenizer made of what is not in the text, such as BOS, is covered by none. `literal`: as
  // of encode_literal().
  [[nodiscard]] CoveredTokens encode_with_coverage(std::string_view text,
                                                   std::span<const TextSpan> spans,
                                                   const EncodeOptions& options = {},
                                                   const LiteralText& literal = {}) const;
  // SentencePiece's first space is taken away again. Throws an input error for an id outside the
  // vocabulary.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids,
                                   const DecodeOptions& options = {}) const;
  // The bytes of one token as decode() would give them; may be a part of a UTF-8 sequence.
  [[nodiscard]] std::string piece_bytes(TokenId id) const;
  // The token as the vocabulary spells it ("Ġcolor"), for tables.
  [[nodiscard]] std::string piece(TokenId id) const;
  [[nodiscard]] std::optional<TokenId> find(std::string_view piece) const;

  [[nodiscard]] std::int64_t vocabulary_size() const;  // largest id + 1
  [[nodiscard]] bool contains(std::int64_t id) const;
  [[nodiscard]] bool is_special(TokenId id) const;
  // "<0x0A>" of a tokenizer that writes bytes outside its vocabulary with such tokens: what
  // decode() makes of it depends on those beside it.
  [[nodiscard]] bool is_byte(TokenId id) const;
  [[nodiscard]] const SpecialPolicy& special() const;
  // "BPE (byte level), pre-tokenizer qwen2, 151,643 pieces and 26 added": for inspect.
  [[nodiscard]] std::string description() const;
  // The Jinja chat template that came with the model, if any; onset recognises known ones and does
  // not run them (see chat.h).
  [[nodiscard]] const std::optional<std::string>& chat_template() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace onset
