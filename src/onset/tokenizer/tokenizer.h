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
  bool add_eos = false;
};

class Tokenizer {
 public:
  // `path`: a folder (tokenizer.json, tokenizer_config.json, config.json, generation_config.json,
  // the last three optional), a tokenizer.json, or a GGUF file with its vocabulary. Throws an input
  // error that names the file and the part that is not known.
  static Tokenizer open(const std::filesystem::path& path);

  // `text` may hold any bytes; invalid UTF-8 is taken as U+FFFD, as the reference tokenizers do.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            const EncodeOptions& options = {}) const;
  // Throws an input error for an id outside the vocabulary.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids,
                                   const DecodeOptions& options = {}) const;
  // The bytes of one token as decode() would give them; may be a part of a UTF-8 sequence.
  [[nodiscard]] std::string piece_bytes(TokenId id) const;
  // The token as the vocabulary spells it ("Ġcolor"), for tables.
  [[nodiscard]] std::string piece(TokenId id) const;
  [[nodiscard]] std::optional<TokenId> find(std::string_view piece) const;

  [[nodiscard]] std::int64_t vocabulary_size() const;  // largest id + 1
  [[nodiscard]] bool is_special(TokenId id) const;
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
