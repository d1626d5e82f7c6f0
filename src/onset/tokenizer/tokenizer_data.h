// What the loaders make and encode() and decode() read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onset/tokenizer/added_tokens.h"
#include "onset/tokenizer/bpe.h"
#include "onset/tokenizer/decoder.h"
#include "onset/tokenizer/normalizer.h"
#include "onset/tokenizer/pretokenizer.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/tokenizer/vocabulary.h"

namespace onset {

struct TokenizerData {
  Vocabulary vocabulary;
  Bpe bpe;
  Normalizer normalizer;
  Pretokenizer pretokenizer;
  std::string pretokenizer_name;  // for people
  Decoder decoder;
  std::string model_name = "BPE (byte level)";  // for people
  std::vector<AddedToken> added;
  // Pieces that the maker of a SentencePiece model defined: found in the normalised text, always.
  std::vector<AddedToken> frozen;
  std::vector<TokenId> prefix;  // what add_special puts before a text, and behind it
  std::vector<TokenId> suffix;
  SpecialPolicy special;
  std::optional<std::string> chat_template;
};

// Finds the file at `path` that holds the tokenizer, and reads it (see tokenizer.h).
[[nodiscard]] TokenizerData load_tokenizer(const std::filesystem::path& path);
// Each takes the file itself; what lies beside it is read too (see tokenizer.h).
[[nodiscard]] TokenizerData load_tokenizer_json(const std::filesystem::path& path);
[[nodiscard]] TokenizerData load_sentencepiece(const std::filesystem::path& path);
[[nodiscard]] TokenizerData load_vocab_and_merges(const std::filesystem::path& vocab,
                                                  const std::filesystem::path& merges);
[[nodiscard]] TokenizerData load_tokenizer_gguf(const std::filesystem::path& path);

// Far above any vocabulary, so that a wrong path to a large file is not read to its end.
constexpr std::size_t max_tokenizer_bytes = std::size_t{256} << 20;

// The piece that stands for a byte where a vocabulary has no other: "<0x0A>".
[[nodiscard]] std::string byte_piece(unsigned byte);
[[nodiscard]] std::optional<unsigned> byte_of_piece(std::string_view spelled);

// Enters a token that is looked for in the text into `data`, and into its vocabulary where it is
// not there yet. Throws an input error "WHERE: ..." when its id or its content is another token's.
void add_token(TokenizerData& data, const AddedToken& token, const std::string& where);
// The ids that single bytes, or characters, start as; before tokens are added to the vocabulary.
void set_byte_symbols(TokenizerData& data, bool byte_fallback);
void set_char_symbols(TokenizerData& data, bool byte_fallback);

// Turns the spellings of merges, in the order of their ranks, into rules for a MergeTable.
class MergeReader {
 public:
  MergeReader(const Vocabulary& vocabulary, std::size_t count, std::string where)
      : vocabulary_(vocabulary), where_(std::move(where)) {
    rules_.reserve(count);
  }
  void add(std::string_view left, std::string_view right);
  [[nodiscard]] const std::vector<MergeTable::Rule>& rules() const { return rules_; }

 private:
  [[nodiscard]] TokenId id_of(std::string_view spelled);

  const Vocabulary& vocabulary_;
  std::string where_;
  std::vector<MergeTable::Rule> rules_;
  std::string bytes_;
  std::string joined_;
};

}  // namespace onset
