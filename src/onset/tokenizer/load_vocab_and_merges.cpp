// GPT-2's tokenizer as two files: the ids of the pieces, and the merges in their order.
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/lenient_json.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/folder_config.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

void read_vocab(const std::filesystem::path& path, TokenizerData& data) {
  const std::string where = path.string();
  const Json table = parse_lenient_json(read_file(path, max_tokenizer_bytes), where);
  require_input(table.is_object(), where, ": should be an object, is ", table.type_name());
  for (const auto& [piece, id] : table.items()) {
    require_input(id.is_number_integer(), where, ": the id of ", quote(piece),
                  " should be an integer, is ", id.type_name());
    const bool huge = id.is_number_unsigned() && id.get<std::uint64_t>() > INT64_MAX;
    const std::int64_t number = huge ? -1 : id.get<std::int64_t>();
    require_input(number >= 0 && number <= max_token_id, where, ": id ", id.dump(),
                  " is out of range");
    require_input(data.vocabulary.add(piece, static_cast<TokenId>(number)), where, ": id ", number,
                  " stands twice");
  }
  data.vocabulary.index();
}

void read_merges(const std::filesystem::path& path, TokenizerData& data) {
  const std::string where = path.string();
  const std::string text = read_file(path, max_tokenizer_bytes);
  require_input(is_valid_utf8(text), where, ": is not valid UTF-8");
  MergeReader merges(data.vocabulary, 0, where);
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    // The version stands in the first line; "#" may also be a piece.
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    require_input(space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                      line.find(' ', space + 1) == std::string_view::npos,
                  where, ": line ", number, ": should be \"a b\"");
    merges.add(line.substr(0, space), line.substr(space + 1));
  }
  data.bpe.merges = MergeTable(merges.rules());
}

// The files do not say how texts are split: the class of the tokenizer does.
void set_splitting(const FolderConfig& config, TokenizerData& data, const std::string& where) {
  std::string kind = config.text("tokenizer_class").value_or("GPT2Tokenizer");
  if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
  const bool qwen = kind == "Qwen2Tokenizer";
  if (!qwen && kind != "GPT2Tokenizer") {
    throw input_error(str_cat(where, ": tokenizer_class ", quote(kind),
                              " is not known to have these files; known are GPT2Tokenizer and "
                              "Qwen2Tokenizer"),
                      "convert the tokenizer to a tokenizer.json");
  }
  if (qwen) data.normalizer.steps.emplace_back().kind = NormalizerStep::Kind::nfc;
  if (config.flag("add_prefix_space").value_or(false)) {
    data.pretokenizer.steps.emplace_back().add_prefix_space = true;
  }
  data.pretokenizer_name = qwen ? "qwen2" : "gpt2";
  data.pretokenizer.steps.emplace_back().known = &pattern_named(data.pretokenizer_name);
}

// GPT-2 knows one special token, which both of its files leave unmarked.
void add_end_of_text(TokenizerData& data, const std::string& where) {
  const auto id = data.vocabulary.find("<|endoftext|>");
  if (!id) return;
  AddedToken token;
  token.content = "<|endoftext|>";
  token.id = *id;
  token.special = true;
  add_token(data, token, where);
  data.special.bos = id;
  data.special.eos = {*id};
}

}  // namespace

TokenizerData load_vocab_and_merges(const std::filesystem::path& vocab,
                                    const std::filesystem::path& merges) {
  TokenizerData data;
  read_vocab(vocab, data);
  read_merges(merges, data);
  set_byte_symbols(data, /*byte_fallback=*/false);
  const FolderConfig config(vocab.parent_path());
  set_splitting(config, data, vocab.string());
  for (const auto& token : config.added_tokens()) add_token(data, token, vocab.string());
  add_end_of_text(data, vocab.string());
  config.apply(data, /*default_bos=*/false);
  return data;
}

}  // namespace onset
