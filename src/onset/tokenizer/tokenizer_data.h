// What the loaders make and encode() and decode() read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onset/tokenizer/added_tokens.h"
#include "onset/tokenizer/bpe.h"
#include "onset/tokenizer/pretokenizer.h"
#include "onset/tokenizer/tokenizer.h"
#include "onset/tokenizer/vocabulary.h"

namespace onset {

struct TokenizerData {
  Vocabulary vocabulary;
  Bpe bpe;
  bool nfc = false;
  Pretokenizer pretokenizer;
  std::string pretokenizer_name;  // for people
  std::vector<AddedToken> added;
  std::vector<TokenId> prefix;  // what add_special puts before a text, and behind it
  std::vector<TokenId> suffix;
  SpecialPolicy special;
  std::optional<std::string> chat_template;
};

// A folder with tokenizer.json, or that file.
[[nodiscard]] TokenizerData load_tokenizer_json(const std::filesystem::path& path);
[[nodiscard]] TokenizerData load_tokenizer_gguf(const std::filesystem::path& path);

// Enters a token that is looked for in the text into `data`, and into its vocabulary where it is
// not there yet. Throws an input error "WHERE: ..." when its id or its content is another token's.
void add_token(TokenizerData& data, const AddedToken& token, const std::string& where);
// The ids that single bytes start as; after the vocabulary is complete.
void set_byte_symbols(TokenizerData& data, bool byte_fallback);

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
