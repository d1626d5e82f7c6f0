// tokenizer.json, as Hugging Face's tokenizers write it.
#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/folder_config.h"
#include "onset/tokenizer/joins.h"
#include "onset/tokenizer/model_reader.h"
#include "onset/tokenizer/pipeline_json.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

void refuse_affix(const Json& model, const std::string& key, const std::string& where) {
  const auto affix = find_string(model, key, where);
  require_input(!affix || affix->empty(), where, ": ", quote(key), " is not known");
}

// The merges as they were read.
MergeReader read_model(const TokenizerFile& file, TokenizerData& data, const std::string& path) {
  const std::string where = path + ": model";
  const auto found = file.document.is_object() ? file.document.find("model") : file.document.end();
  require_input(file.document.is_object() && found != file.document.end() && found->is_object(),
                path, ": is not a tokenizer.json: it has no object \"model\"");
  const Json& model = *found;
  const std::string type = find_string(model, "type", where).value_or("BPE");
  require_input(type == "BPE", where, ": type ", quote(type), " is not known; known is BPE");
  require_input(file.has_vocabulary, where, ": has no object \"vocab\"");
  refuse_affix(model, "continuing_subword_prefix", where);
  refuse_affix(model, "end_of_word_suffix", where);
  require_input(find_number(model, "dropout", where).value_or(0) == 0, where,
                ": \"dropout\" makes the result random, which is not known");
  data.bpe.ignore_merges = find_bool(model, "ignore_merges", where).value_or(false);
  data.bpe.fuse_unknown = find_bool(model, "fuse_unk", where).value_or(false);
  if (const auto unknown = find_string(model, "unk_token", where)) {
    data.bpe.unknown = data.vocabulary.find(*unknown);
    require_input(data.bpe.unknown.has_value(), where, ": unk_token \"", *unknown,
                  "\" is not in the vocabulary");
  }
  MergeReader merges(data.vocabulary, file.merges.size(), where);
  const std::string_view text = file.merge_text;
  for (const auto& merge : file.merges) {
    merges.add(text.substr(merge.start, merge.middle - merge.start),
               text.substr(merge.middle, merge.end - merge.middle));
  }
  data.bpe.merges = MergeTable(merges.rules());
  const bool byte_fallback = find_bool(model, "byte_fallback", where).value_or(false);
  if (data.vocabulary.spelling() == Spelling::byte_level) {
    set_byte_symbols(data, byte_fallback);
  } else {
    set_char_symbols(data, byte_fallback);
    data.model_name = byte_fallback ? "BPE (characters, byte fallback)" : "BPE (characters)";
  }
  return merges;
}

// Cuts where no merge joins (see joins.h). A merge of a token that does not stand for its own
// characters could join any, and merges that are ignored say nothing.
void add_joins(TokenizerData& data, const MergeReader& merges) {
  if (data.vocabulary.spelling() != Spelling::plain || data.bpe.ignore_merges) return;
  const auto stands_for_others = [&](TokenId id) {
    return id == data.bpe.unknown || byte_of_piece(data.vocabulary.bytes(id)).has_value();
  };
  auto joins = std::make_shared<JoinTable>();
  for (const auto& rule : merges.rules()) {
    if (stands_for_others(rule.left) || stands_for_others(rule.right)) return;
    joins->add(data.vocabulary.bytes(rule.result));
  }
  joins->add_unknown(data.bpe.chars, data.vocabulary.size());
  data.pretokenizer.steps.emplace_back().joins = std::move(joins);
}

// The parts in their usual order give the spelling of the vocabulary away before it is read; where
// the guess was wrong, the file is read again.
TokenizerFile read_file_of(const std::string& text, const std::string& where) {
  const bool bytes = text.find("\"ByteLevel\"") != std::string::npos;
  const Spelling guess = bytes ? Spelling::byte_level : Spelling::plain;
  TokenizerFile file = read_tokenizer_file(text, guess, where);
  require_input(file.document.is_object(), where,
                ": is not a tokenizer.json: it has no object \"model\"");
  const Spelling spelling = spelling_of_file(file.document, where);
  return spelling == guess ? std::move(file) : read_tokenizer_file(text, spelling, where);
}

}  // namespace

TokenizerData load_tokenizer_json(const std::filesystem::path& path) {
  const std::string where = path.string();
  TokenizerData data;
  TokenizerFile file = read_file_of(read_file(path, max_tokenizer_bytes), where);
  data.vocabulary = std::move(file.vocabulary);
  data.vocabulary.index();
  const MergeReader merges = read_model(file, data, where);
  read_normalizer(file.document, data, where);
  read_pretokenizer(file.document, data, where);
  add_joins(data, merges);
  read_decoder(file.document, data, where);
  read_added_tokens(file.document, data, where);
  read_post_processor(file.document, data, where);
  FolderConfig(path.parent_path()).apply(data, /*default_bos=*/false);
  return data;
}

}  // namespace onset
