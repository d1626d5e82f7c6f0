#include "onset/tokenizer/folder_config.h"

#include <algorithm>
#include <charconv>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/lenient_json.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

Json read_object(const fs::path& path) {
  if (!fs::exists(path)) return Json::object();
  Json config = read_lenient_json(path);
  require_input(config.is_object(), path.string(), ": should be an object, is ",
                config.type_name());
  return config;
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
  const Json config = read_object(path);
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
void apply_bos_and_eos_flags(const Json& config, TokenizerData& data, bool default_bos,
                             const std::string& where) {
  const auto add_bos = find_bool(config, "add_bos_token", where);
  const auto add_eos_flag = find_bool(config, "add_eos_token", where);
  if (!add_bos && !add_eos_flag) return;
  const auto eos = token_named(config, "eos_token", data, where);
  data.prefix.clear();
  data.suffix.clear();
  if (add_bos.value_or(default_bos) && data.special.bos) data.prefix = {*data.special.bos};
  if (add_eos_flag.value_or(false) && eos) data.suffix = {*eos};
}

void add_listed(const AddedToken& token, std::vector<AddedToken>& tokens) {
  const auto same = [&](const AddedToken& other) { return other.id == token.id; };
  if (std::none_of(tokens.begin(), tokens.end(), same)) tokens.push_back(token);
}

AddedToken listed_token(const std::string& content, std::int64_t id, const std::string& where) {
  require_input(id >= 0 && id <= max_token_id, where, ": added token ", quote(content), ": id ", id,
                " is out of range");
  AddedToken token;
  token.content = content;
  token.id = static_cast<TokenId>(id);
  return token;
}

// "added_tokens_decoder": {"32000": {"content": "<|end|>", ..}, ..}.
void read_added_tokens_decoder(const Json& config, const std::string& where,
                               std::vector<AddedToken>& tokens) {
  const auto table = config.find("added_tokens_decoder");
  if (table == config.end() || table->is_null()) return;
  require_input(table->is_object(), where, ": added_tokens_decoder should be an object, is ",
                table->type_name());
  for (const auto& item : table->items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    require_input(error == std::errc() && end == key.data() + key.size(), where,
                  ": added_tokens_decoder: ", quote(key), " is not an id");
    require_input(value.is_object(), where, ": added_tokens_decoder: ", key,
                  " should be an object, is ", value.type_name());
    AddedToken token = listed_token(find_string(value, "content", where).value_or(""), id, where);
    const auto flag = [&](const char* name) {
      return find_bool(value, name, where).value_or(false);
    };
    token.special = flag("special");
    token.single_word = flag("single_word");
    token.lstrip = flag("lstrip");
    token.rstrip = flag("rstrip");
    add_listed(token, tokens);
  }
}

}  // namespace

FolderConfig::FolderConfig(const fs::path& folder)
    : folder_(folder),
      path_((folder / "tokenizer_config.json").string()),
      tokenizer_config_(read_object(path_)) {}

std::optional<bool> FolderConfig::flag(const std::string& key) const {
  return find_bool(tokenizer_config_, key, path_);
}

std::optional<std::string> FolderConfig::text(const std::string& key) const {
  return find_string(tokenizer_config_, key, path_);
}

std::vector<AddedToken> FolderConfig::added_tokens() const {
  std::vector<AddedToken> tokens;
  read_added_tokens_decoder(tokenizer_config_, path_, tokens);
  const fs::path path = folder_ / "added_tokens.json";
  const Json table = read_object(path);
  for (const auto& [content, id] : table.items()) {
    require_input(id.is_number_integer(), path.string(), ": the id of ", quote(content),
                  " should be an integer, is ", id.type_name());
    add_listed(listed_token(content, id.get<std::int64_t>(), path.string()), tokens);
  }
  return tokens;
}

void FolderConfig::apply(TokenizerData& data, bool default_bos) const {
  read_eos_ids(folder_ / "generation_config.json", data.special);
  read_eos_ids(folder_ / "config.json", data.special);
  if (const auto bos = token_named(tokenizer_config_, "bos_token", data, path_)) {
    data.special.bos = bos;
  }
  if (const auto eos = token_named(tokenizer_config_, "eos_token", data, path_)) {
    add_eos(data.special, *eos);
    data.special.end_of_text = *eos;
  } else if (!data.special.eos.empty()) {
    data.special.end_of_text = data.special.eos.front();
  }
  data.chat_template = find_template(tokenizer_config_, path_);
  if (const fs::path jinja = folder_ / "chat_template.jinja"; fs::exists(jinja)) {
    data.chat_template = lossy_utf8(read_file(jinja));
  }
  apply_bos_and_eos_flags(tokenizer_config_, data, default_bos, path_);
  if (!data.special.bos && !data.prefix.empty()) data.special.bos = data.prefix.front();
  data.special.add_bos = !data.prefix.empty();
  data.special.add_eos = !data.suffix.empty();
}

}  // namespace onset
