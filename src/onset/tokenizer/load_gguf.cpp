// A tokenizer from the metadata of a GGUF file.
#include <algorithm>
#include <array>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/gguf.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// What `tokenizer.ggml.pre` stands for: the known patterns, one inside the pieces of the other.
struct PreRow {
  std::string_view name;
  std::array<std::string_view, 3> patterns;
  bool nfc = false;  // the model's own tokenizer normalises, which the file does not say
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

constexpr std::array<PreRow, 17> pre_rows = {{
    {"gpt-2", {"gpt2"}},
    {"phi-2", {"gpt2"}},
    {"olmo", {"gpt2"}},
    {"mpt", {"gpt2"}},
    {"smollm", {"digits", "gpt2"}},
    {"starcoder", {"digits", "gpt2"}},
    {"refact", {"digits", "gpt2"}},
    {"command-r", {"digits", "gpt2"}},
    {"codeshell", {"digits", "gpt2"}},
    {"qwen2", {"qwen2"}, /*nfc=*/true},
    {"deepseek-r1-qwen", {"qwen2"}, /*nfc=*/true},
    {"llama3", {"llama3"}, /*nfc=*/false, /*ignore_merges=*/true, /*add_bos=*/true},
    {"llama-v3", {"llama3"}, /*nfc=*/false, /*ignore_merges=*/true, /*add_bos=*/true},
    {"llama-bpe", {"llama3"}, /*nfc=*/false, /*ignore_merges=*/true, /*add_bos=*/true},
    {"dbrx", {"llama3"}},
    {"deepseek-v3", {"digits by three", "cjk", "deepseek3"}},
    {"default", {}},
}};

// llama.cpp's rule for a file that names none, or "default".
constexpr std::array<std::string_view, 4> default_regexes = {
    R"([\p{P}\$\+<=>\^~\|]+)",
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))",
    R"(\p{N}+)",
    "[0-9][0-9][0-9]",
};

enum class TokenType : std::int64_t { normal = 1, unknown, control, user_defined, unused, byte };

std::string known_pre_names() {
  std::string names;
  for (const auto& row : pre_rows) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

const PreRow& pre_row(const std::string& name, const std::string& where) {
  const auto* row = std::find_if(pre_rows.begin(), pre_rows.end(),
                                 [&](const PreRow& r) { return r.name == name; });
  if (row == pre_rows.end()) {
    throw input_error(
        str_cat(where, ": tokenizer.ggml.pre ", quote(name), " is not a known pre-tokenizer"),
        str_cat("known are ", known_pre_names()));
  }
  return *row;
}

const GgufArray& required_array(const GgufFile& file, const std::string& key,
                                const std::string& where) {
  const auto found = file.arrays.find(key);
  require_input(found != file.arrays.end(), where, ": has no ", key);
  return found->second;
}

void read_tokens(const GgufFile& file, TokenizerData& data, const std::string& where) {
  const auto tokens = required_array(file, "tokenizer.ggml.tokens", where).strings();
  require_input(!tokens.empty(), where, ": tokenizer.ggml.tokens is empty");
  require_input(tokens.size() <= static_cast<std::size_t>(max_token_id), where,
                ": tokenizer.ggml.tokens has ", tokens.size(), " entries");
  std::vector<std::int64_t> types(tokens.size(), static_cast<std::int64_t>(TokenType::normal));
  if (const auto found = file.arrays.find("tokenizer.ggml.token_type");
      found != file.arrays.end()) {
    types = found->second.integers();
    require_input(types.size() == tokens.size(), where, ": tokenizer.ggml.token_type has ",
                  types.size(), " entries, expected ", tokens.size(), ", one a token");
  }
  std::size_t bytes = 0;
  for (const auto token : tokens) bytes += token.size();
  data.vocabulary.reserve(tokens.size(), bytes);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    require_input(is_valid_utf8(tokens[i]), where, ": token ", i, " is not valid UTF-8");
    static_cast<void>(data.vocabulary.add(tokens[i], static_cast<TokenId>(i)));  // ids are distinct
  }
  data.vocabulary.index();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto type = static_cast<TokenType>(types[i]);
    const bool special = type == TokenType::control || type == TokenType::unknown;
    if (!special && type != TokenType::user_defined) continue;
    AddedToken token;
    token.content = tokens[i];
    token.id = static_cast<TokenId>(i);
    token.special = special;
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

void read_special(const GgufFile& file, TokenizerData& data, const PreRow& row,
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
  const auto add_bos = find_bool(file.scalars, "tokenizer.ggml.add_bos_token", where);
  const auto add_eos = find_bool(file.scalars, "tokenizer.ggml.add_eos_token", where);
  const auto eos = find_id(file, "tokenizer.ggml.eos_token_id", data, where);
  special.add_bos = add_bos.value_or(row.add_bos) && special.bos;
  special.add_eos = add_eos.value_or(false) && eos;
  if (special.add_bos) data.prefix = {*special.bos};
  if (special.add_eos) data.suffix = {*eos};
}

void read_pre(TokenizerData& data, const PreRow& row, const std::string& where) {
  data.pretokenizer_name = row.name;
  data.nfc = row.nfc;
  data.bpe.ignore_merges = row.ignore_merges;
  for (const auto name : row.patterns) {
    if (name.empty()) continue;
    data.pretokenizer.steps.emplace_back().known = &pattern_named(name);
  }
  if (!data.pretokenizer.steps.empty()) return;
  for (const auto regex : default_regexes) {
    data.pretokenizer.steps.emplace_back().regex.emplace(regex, where);
  }
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
  require_input(*model == "gpt2", where, ": tokenizer.ggml.model \"", *model,
                "\" is not known; known is gpt2 (byte-level BPE)");
  const auto pre = find_string(file.scalars, "tokenizer.ggml.pre", where);
  const PreRow& row = pre_row(pre.value_or("default"), where);
  TokenizerData data;
  read_tokens(file, data, where);
  read_merges(file, data, where);
  set_byte_symbols(data, /*byte_fallback=*/false);
  read_pre(data, row, where);
  read_special(file, data, row, where);
  data.chat_template = find_string(file.scalars, "tokenizer.chat_template", where);
  return data;
}

}  // namespace onset
