// A tokenizer from a folder as Hugging Face lays it out: tokenizer.json, and beside it what the
// optional configuration files say about BOS, EOS and the chat template.
#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/model_reader.h"
#include "onset/tokenizer/pipeline_json.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

// Far above any vocabulary, so that a wrong path to a large file is not read to its end.
constexpr std::size_t max_file_bytes = std::size_t{256} << 20;

void refuse_affix(const Json& model, const std::string& key, const std::string& where) {
  const auto affix = find_string(model, key, where);
  require_input(!affix || affix->empty(), where, ": ", quote(key), " is not known");
}

void read_model(const TokenizerFile& file, TokenizerData& data, const std::string& path) {
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
  set_byte_symbols(data, find_bool(model, "byte_fallback", where).value_or(false));
}

// "bos_token": a string, or an object with its content.
std::optional<std::string> token_content(const Json& config, const std::string& key,
                                         const std::string& where) {
  const auto found = config.find(key);
  if (found != config.end() && found->is_object()) return find_string(*found, "content", where);
  return find_string(config, key, where);
}

std::optional<TokenId> token_named(const Json& config, const std::string& key,
                                   const TokenizerData& data, const std::string& where) {
  const auto content = token_content(config, key, where);
  if (!content || content->empty()) return std::nullopt;
  const auto id = data.vocabulary.find(*content);
  require_input(id.has_value(), where, ": ", key, " ", quote(*content),
                " is not in the vocabulary");
  return id;
}

void add_eos(SpecialPolicy& policy, std::int64_t id) {
  if (id < 0 || id > max_token_id) return;  // -1 stands for none
  const auto token = static_cast<TokenId>(id);
  if (std::find(policy.eos.begin(), policy.eos.end(), token) == policy.eos.end()) {
    policy.eos.push_back(token);
  }
}

// eos_token_id of config.json or generation_config.json: a number or a list of them.
void read_eos_ids(const fs::path& path, SpecialPolicy& policy) {
  if (!fs::exists(path)) return;
  const Json config = read_json(path);
  require_input(config.is_object(), path.string(), ": should be an object, is ",
                config.type_name());
  const auto found = config.find("eos_token_id");
  if (found == config.end() || !found->is_array()) {
    if (const auto id = find_int(config, "eos_token_id", path.string())) add_eos(policy, *id);
    return;
  }
  for (const auto& id : *found) {
    require_input(id.is_number_integer(), path.string(),
                  ": eos_token_id should hold integers, has ", id.type_name());
    add_eos(policy, id.get<std::int64_t>());
  }
}

// One template, or a list of {name, template} of which "default" is taken.
std::optional<std::string> find_template(const Json& config, const std::string& where) {
  const auto found = config.find("chat_template");
  if (found == config.end() || !found->is_array()) {
    return find_string(config, "chat_template", where);
  }
  for (const auto& entry : *found) {
    if (find_string(entry, "name", where) == "default") {
      return find_string(entry, "template", where);
    }
  }
  return std::nullopt;
}

// Flags that stand in tokenizer_config.json replace what tokenizer.json adds, as in the reference.
void apply_bos_and_eos_flags(const Json& config, TokenizerData& data, const std::string& where) {
  const auto add_bos = find_bool(config, "add_bos_token", where);
  const auto add_eos_flag = find_bool(config, "add_eos_token", where);
  if (!add_bos && !add_eos_flag) return;
  const auto eos = token_named(config, "eos_token", data, where);
  data.prefix.clear();
  data.suffix.clear();
  if (add_bos.value_or(false) && data.special.bos) data.prefix = {*data.special.bos};
  if (add_eos_flag.value_or(false) && eos) data.suffix = {*eos};
}

void read_tokenizer_config(const fs::path& path, TokenizerData& data) {
  if (!fs::exists(path)) return;
  const std::string where = path.string();
  const Json config = read_json(path);
  require_input(config.is_object(), where, ": should be an object, is ", config.type_name());
  data.special.bos = token_named(config, "bos_token", data, where);
  if (const auto eos = token_named(config, "eos_token", data, where)) add_eos(data.special, *eos);
  data.chat_template = find_template(config, where);
  apply_bos_and_eos_flags(config, data, where);
}

}  // namespace

TokenizerData load_tokenizer_json(const fs::path& path) {
  const bool folder = fs::is_directory(path);
  const fs::path file_path = folder ? path / "tokenizer.json" : path;
  const fs::path around = folder ? path : path.parent_path();
  require_input(fs::exists(file_path), path.string(),
                folder ? ": has no tokenizer.json" : ": does not exist");
  const std::string where = file_path.string();
  TokenizerData data;
  TokenizerFile file = read_tokenizer_file(read_file(file_path, max_file_bytes), where);
  data.vocabulary = std::move(file.vocabulary);
  data.vocabulary.index();
  read_model(file, data, where);
  read_normalizer(file.document, data, where);
  read_pretokenizer(file.document, data, where);
  read_decoder(file.document, where);
  read_added_tokens(file.document, data, where);
  read_post_processor(file.document, data, where);

  read_eos_ids(around / "generation_config.json", data.special);
  read_eos_ids(around / "config.json", data.special);
  read_tokenizer_config(around / "tokenizer_config.json", data);
  if (const fs::path jinja = around / "chat_template.jinja"; fs::exists(jinja)) {
    data.chat_template = lossy_utf8(read_file(jinja));
  }
  if (!data.special.bos && !data.prefix.empty()) data.special.bos = data.prefix.front();
  data.special.add_bos = !data.prefix.empty();
  data.special.add_eos = !data.suffix.empty();
  return data;
}

}  // namespace onset
