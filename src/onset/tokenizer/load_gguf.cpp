// A tokenizer from the metadata of a GGUF file: byte-level BPE ("gpt2") or SentencePiece ("llama").
#include <algorithm>
#include <array>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/gguf.h"
#include "onset/tokenizer/gguf_pretokenizers.h"
#include "onset/tokenizer/sentencepiece.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

const GgufArray& required_array(const GgufFile& file, const std::string& key,
                                const std::string& where) {
  const auto found = file.arrays.find(key);
  require_input(found != file.arrays.end(), where, ": has no ", key);
  return found->second;
}

struct Tokens {
  std::vector<std::string_view> texts;
  std::vector<PieceType> types;
};

Tokens read_tokens(const GgufFile& file, const std::string& where) {
  Tokens tokens;
  tokens.texts = required_array(file, "tokenizer.ggml.tokens", where).strings();
  const std::size_t count = tokens.texts.size();
  require_input(count > 0, where, ": tokenizer.ggml.tokens is empty");
  require_input(count <= static_cast<std::size_t>(max_token_id), where,
                ": tokenizer.ggml.tokens has ", count, " entries");
  for (std::size_t i = 0; i < count; ++i) {
    require_input(is_valid_utf8(tokens.texts[i]), where, ": token ", i, " is not valid UTF-8");
  }
  tokens.types.assign(count, PieceType::normal);
  const auto found = file.arrays.find("tokenizer.ggml.token_type");
  if (found == file.arrays.end()) return tokens;
  const auto numbers = found->second.integers();
  require_input(numbers.size() == count, where, ": tokenizer.ggml.token_type has ", numbers.size(),
                " entries, expected ", count, ", one a token");
  for (std::size_t i = 0; i < count; ++i) tokens.types[i] = static_cast<PieceType>(numbers[i]);
  return tokens;
}

void set_vocabulary(const Tokens& tokens, TokenizerData& data) {
  std::size_t bytes = 0;
  for (const auto text : tokens.texts) bytes += text.size();
  data.vocabulary.reserve(tokens.texts.size(), bytes);
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    static_cast<void>(data.vocabulary.add(tokens.texts[i], static_cast<TokenId>(i)));  // distinct
  }
  data.vocabulary.index();
}

// `always`: pieces that the user defined are found whatever the options say.
void add_tokens(const Tokens& tokens, TokenizerData& data, bool always, const std::string& where) {
  for (std::size_t i = 0; i < tokens.texts.size(); ++i) {
    const PieceType type = tokens.types[i];
    const bool special = type == PieceType::control || type == PieceType::unknown;
    if (!special && type != PieceType::user_defined) continue;
    AddedToken token;
    token.content = tokens.texts[i];
    token.id = static_cast<TokenId>(i);
    token.special = special;
    token.always = always && !special;
    add_token(data, token, where);
  }
}

void read_merges(const GgufFile& file, TokenizerData& data, const std::string& where) {
  const auto merges = required_array(file, "tokenizer.ggml.merges", where).strings();
  MergeReader reader(data.vocabulary, merges.size(), where + ": tokenizer.ggml.merges");
  for (const auto merge : merges) {
    // A piece may begin with a space of its own, never be empty.
    const std::size_t space = merge.find(' ', 1);
    require_input(space != std::string_view::npos && is_valid_utf8(merge), where,
                  ": tokenizer.ggml.merges: an entry should be \"a b\"");
    reader.add(merge.substr(0, space), merge.substr(space + 1));
  }
  data.bpe.merges = MergeTable(reader.rules());
}

std::optional<TokenId> find_id(const GgufFile& file, const std::string& key,
                               const TokenizerData& data, const std::string& where) {
  const auto id = find_int(file.scalars, key, where);
  if (!id || *id < 0 || *id == UINT32_MAX) return std::nullopt;  // both stand for none
  require_input(data.vocabulary.contains(*id), where, ": ", key, " is ", *id,
                ", the vocabulary has ", data.vocabulary.size(), " tokens");
  return static_cast<TokenId>(*id);
}

void read_special(const GgufFile& file, TokenizerData& data, bool default_bos,
                  const std::string& where) {
  SpecialPolicy& special = data.special;
  special.bos = find_id(file, "tokenizer.ggml.bos_token_id", data, where);
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    const auto id = find_id(file, key, data, where);
    if (id && std::find(special.eos.begin(), special.eos.end(), *id) == special.eos.end()) {
      special.eos.push_back(*id);
    }
  }
  if (!special.eos.empty()) special.end_of_text = special.eos.front();
  const auto add_bos = find_bool(file.scalars, "tokenizer.ggml.add_bos_token", where);
  const auto add_eos = find_bool(file.scalars, "tokenizer.ggml.add_eos_token", where);
  const auto eos = find_id(file, "tokenizer.ggml.eos_token_id", data, where);
  special.add_bos = add_bos.value_or(default_bos) && special.bos;
  special.add_eos = add_eos.value_or(false) && eos;
  if (special.add_bos) data.prefix = {*special.bos};
  if (special.add_eos) data.suffix = {*eos};
}

void read_byte_level(const GgufFile& file, TokenizerData& data, const std::string& where) {
  const auto pre = find_string(file.scalars, "tokenizer.ggml.pre", where);
  const GgufPretokenizer rule = gguf_pretokenizer(pre.value_or("default"), where);
  const Tokens tokens = read_tokens(file, where);
  set_vocabulary(tokens, data);
  add_tokens(tokens, data, /*always=*/false, where);
  read_merges(file, data, where);
  set_byte_symbols(data, /*byte_fallback=*/false);
  data.pretokenizer = rule.pretokenizer;
  data.pretokenizer_name = pre.value_or("default");
  if (rule.nfc) data.normalizer.steps.emplace_back().kind = NormalizerStep::Kind::nfc;
  data.bpe.ignore_merges = rule.ignore_merges;
  read_special(file, data, rule.add_bos, where);
}

// Phi-3's own tokenizer takes the white space behind its special tokens along, which the file does
// not say: llama.cpp goes by the name of the model.
void strip_behind_tokens_of_phi3(const GgufFile& file, TokenizerData& data,
                                 const std::string& where) {
  std::string name = find_string(file.scalars, "general.name", where).value_or("");
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  if (name.find("phi-3") == std::string::npos && name.find("phi3") == std::string::npos) return;
  for (auto& token : data.added) {
    const bool plain =
        token.content == "<unk>" || token.content == "<s>" || token.content == "<|endoftext|>";
    token.rstrip = !plain;
  }
}

// Files of Phi-3 and Gemma name the end of the text alone; a turn ends with one of these.
void add_ends_of_turns(TokenizerData& data) {
  auto& eos = data.special.eos;
  for (const auto& token : data.added) {
    const bool ends = token.content == "<|end|>" || token.content == "<end_of_turn>";
    if (ends && std::find(eos.begin(), eos.end(), token.id) == eos.end()) eos.push_back(token.id);
  }
}

void read_sentencepiece(const GgufFile& file, TokenizerData& data, const std::string& where) {
  const Tokens tokens = read_tokens(file, where);
  const auto scores = required_array(file, "tokenizer.ggml.scores", where).numbers();
  require_input(scores.size() == tokens.texts.size(), where, ": tokenizer.ggml.scores has ",
                scores.size(), " entries, expected ", tokens.texts.size(), ", one a token");
  std::vector<ScoredPiece> pieces;
  pieces.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    pieces.push_back({tokens.texts[i], static_cast<float>(scores[i]), tokens.types[i]});
  }
  set_scored_pieces(data, pieces, /*byte_fallback=*/true, where);
  if (const auto unknown = find_id(file, "tokenizer.ggml.unknown_token_id", data, where)) {
    data.bpe.unknown = unknown;
  }
  add_tokens(tokens, data, /*always=*/true, where);
  strip_behind_tokens_of_phi3(file, data, where);
  const bool prefix =
      find_bool(file.scalars, "tokenizer.ggml.add_space_prefix", where).value_or(true);
  NormalizerStep step;
  step.kind = NormalizerStep::Kind::sentencepiece;
  step.rule.dummy_prefix = prefix ? PrefixScheme::always : PrefixScheme::never;
  data.normalizer.steps.push_back(std::move(step));
  data.decoder.kind = Decoder::Kind::sentencepiece;
  data.decoder.strip_first_space = prefix;
  read_special(file, data, /*default_bos=*/true, where);
  add_ends_of_turns(data);
}

}  // namespace

TokenizerData load_tokenizer_gguf(const std::filesystem::path& path) {
  const std::string where = path.string();
  const GgufFile file = read_gguf(path);
  const auto model = find_string(file.scalars, "tokenizer.ggml.model", where);
  if (!model || *model == "none" || *model == "no_vocab") {
    throw input_error(str_cat(where, ": has no tokenizer"),
                      "give token ids with --ids, or name a folder that holds the tokenizer");
  }
  TokenizerData data;
  if (*model == "gpt2") {
    read_byte_level(file, data, where);
  } else if (*model == "llama") {
    read_sentencepiece(file, data, where);
  } else {
    throw input_error(str_cat(where, ": tokenizer.ggml.model ", quote(*model),
                              " is not known; known are gpt2 (byte-level BPE) and llama "
                              "(SentencePiece BPE)"));
  }
  data.chat_template = find_string(file.scalars, "tokenizer.chat_template", where);
  return data;
}

}  // namespace onset
