#include "prompts.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr std::int64_t largest_id = INT32_MAX;

OrderedJson parse_object(const std::string& line, const std::string& where) {
  auto row = parse_ordered_json(line, where);
  require_input(row.is_object(), where, ": should be a JSON object, is ", row.type_name());
  return row;
}

std::vector<TokenId> row_ids(const OrderedJson& values, const std::string& where) {
  require_input(values.is_array(), where, ": \"ids\" should be an array of integers, is ",
                values.type_name());
  std::vector<TokenId> ids;
  for (const auto& value : values) {
    const bool fits =
        value.is_number_integer() &&
        (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{largest_id}) &&
        value.get<std::int64_t>() >= 0;
    require_input(fits, where, ": \"ids\" holds ", quote(value.dump(), 40),
                  ", which is no token id");
    ids.push_back(value.get<TokenId>());
  }
  return ids;
}

// The extra variables of a chat template that onset knows.
ChatOptions row_options(const OrderedJson& row, const std::string& where) {
  ChatOptions options;
  if (const auto found = row.find("add_generation_prompt"); found != row.end()) {
    require_input(found->is_boolean(), where,
                  ": \"add_generation_prompt\" should be true or false");
    options.add_generation_prompt = found->get<bool>();
  }
  const auto found = row.find("options");
  if (found == row.end() || found->is_null()) return options;
  require_input(found->is_object(), where, ": \"options\" should be an object");
  for (const auto& [key, value] : found->items()) {
    if (key == "enable_thinking") {
      require_input(value.is_boolean(), where, ": \"enable_thinking\" should be true or false");
      options.enable_thinking = value.get<bool>();
    } else if (key == "date_string") {
      require_input(value.is_string(), where, ": \"date_string\" should be a string");
      options.date_string = value.get<std::string>();
    } else if (key == "tools") {
      options.tools = value;
    } else {
      throw input_error(str_cat(where, ": unknown option ", quote(key)),
                        "known: enable_thinking, date_string, tools");
    }
  }
  return options;
}

PromptSource source_of(const OrderedJson& row, const std::string& where, RowFields fields) {
  const auto given = [&row](const char* key) {
    const auto found = row.find(key);
    return found == row.end() || found->is_null() ? nullptr : &*found;
  };
  if (fields == RowFields::text_first) {
    if (const auto* messages = given("messages")) {
      return {where, ChatMessages{*messages, row_options(row, where)}};
    }
    if (const auto* text = given("text")) {
      require_input(text->is_string(), where, ": \"text\" should be a string, is ",
                    text->type_name());
      return {where, text->get<std::string>()};
    }
  }
  if (const auto* ids = given("ids")) return {where, row_ids(*ids, where)};
  throw input_error(fields == RowFields::ids_only
                        ? str_cat(where, R"(: has no "ids")")
                        : str_cat(where, R"(: has none of "text", "ids", "messages")"));
}

}  // namespace

const std::vector<std::string>& built_in_texts() {
  static const std::vector<std::string> texts{
      "My favorite color is Dark Blue.",
      "The lighthouse had been dark for years, but in the night of the storm its lamp was lit.",
      "What is the capital of Australia, and why is it not Sydney?",
      "def mean(values):\n    total = sum(values)\n    return total / len(values)\n",
      "If 3x + 7 = 25, then 3x = 18 and therefore x = 6.",
      "Der Zug nach Hamburg hat heute leider zwanzig Minuten Versp\xC3\xA4tung.",
      "Shopping list:\n- milk\n- two loaves of bread\n- apples\n- coffee\n",
      "Water boils at a lower temperature on a mountain because the air pressure there is lower.",
  };
  return texts;
}

PromptSource parse_row(const std::string& line, const std::string& where, RowFields fields) {
  return source_of(parse_object(line, where), where, fields);
}

std::vector<TokenId> parse_ids(const std::string& where, std::string_view text) {
  const std::string_view separators = ", \t\r\n";
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<TokenId> ids;
  const auto missing = [&where] {
    return usage_error(where + ": a token id is missing beside a comma", "ids look like 1,5,9");
  };
  bool after_comma = true;  // or at the beginning: an id has to come before the next comma
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) {
      ids.push_back(static_cast<TokenId>(parse_integer(where, text.substr(0, end), 0, largest_id)));
      after_comma = false;
    }
    if (end < text.size() && text[end] == ',') {
      if (after_comma) throw missing();
      after_comma = true;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (after_comma && !ids.empty()) throw missing();
  return ids;
}

void for_each_row(const std::string& path, RowFields fields,
                  const std::function<void(PromptSource)>& take) {
  std::error_code ignored;
  std::ifstream file(path);
  require_input(file.is_open(), printable(path, true), ": cannot open: ", std::strerror(errno));
  require_input(!std::filesystem::is_directory(path, ignored), printable(path, true),
                ": is a folder");
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = str_cat(printable(path, true), ":", number);
    take(parse_row(line, where, fields));
  }
  require_input(!file.bad(), printable(path, true), ": cannot be read to its end");
}

void refuse_idle_chat_options(const std::string& format, bool parse_special, bool chat,
                              const std::vector<std::string>& jsonl) {
  if ((format.empty() && !parse_special) || chat || !jsonl.empty()) return;
  throw usage_error(
      str_cat(format.empty() ? "--parse-special" : "--chat-format",
              " is for chats, and there is none"),
      "add --chat to take the text as a user's message, or give --jsonl with messages");
}

std::vector<PromptSource> read_prompts(const PromptOptions& options) {
  if (options.chat && !options.ids.empty() && options.texts.empty() && options.jsonl.empty()) {
    throw usage_error("--chat needs a text: --ids are taken as they are",
                      "give --prompt TEXT, or leave --chat out");
  }
  refuse_idle_chat_options(options.chat_format, options.parse_special, options.chat, options.jsonl);
  std::vector<PromptSource> sources;
  for (std::size_t i = 0; i < options.texts.size(); ++i) {
    if (options.texts[i].empty()) {
      throw usage_error(str_cat("--prompt ", i + 1, " is empty"), "give at least one character");
    }
    sources.push_back({str_cat("--prompt ", i + 1), options.texts[i]});
  }
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    const auto where = numbered_option("--ids", i, options.ids.size());
    auto ids = parse_ids(where, options.ids[i]);
    if (ids.empty()) throw usage_error(where + " is empty", "give ids such as --ids 1,5,9");
    sources.push_back({where, std::move(ids)});
  }
  for (const auto& path : options.jsonl) {
    const auto before = sources.size();
    for_each_row(path, RowFields::text_first,
                 [&sources](PromptSource source) { sources.push_back(std::move(source)); });
    require_input(sources.size() > before, printable(path, true), ": holds no prompt");
  }
  return sources;
}

std::vector<PromptSource> prompts_or_built_in(const PromptOptions& options) {
  auto sources = read_prompts(options);
  if (sources.empty()) {
    for (const auto& text : built_in_texts()) sources.push_back({"built-in text", text});
  }
  return sources;
}

std::string numbered_option(const std::string& option, std::size_t index, std::size_t count) {
  return count == 1 ? option : str_cat(option, " ", index + 1);
}

Tokenizer open_tokenizer(const std::filesystem::path& model, const std::string& hint) {
  try {
    return Tokenizer::open(model);
  } catch (const Error& error) {
    const bool unsaid = error.kind() == ErrorKind::input && error.hint().empty();
    throw Error(error.kind(), error.what(), unsaid ? hint : error.hint());
  }
}

std::optional<std::int64_t> bos_before_text(BosChoice choice, const Tokenizer& tokenizer) {
  const auto& special = tokenizer.special();
  if (choice == BosChoice::yes && !special.bos) {
    throw usage_error("--bos yes: this model's tokenizer has no BOS token", "use --bos no or auto");
  }
  const bool wanted =
      choice == BosChoice::yes || (choice == BosChoice::automatic && special.add_bos);
  return wanted && special.bos ? std::optional<std::int64_t>(*special.bos) : std::nullopt;
}

PromptEncoder::PromptEncoder(std::filesystem::path model, const PromptOptions& options,
                             const ModelConfig& config, Log log)
    : model_(std::move(model)),
      choice_(options.bos),
      chat_(options.chat),
      parse_special_(options.parse_special),
      config_bos_(config.bos),
      vocabulary_(config.vocabulary),
      context_(config.context),
      log_(std::move(log)),
      chats_(options.chat_format) {}

const Tokenizer& PromptEncoder::tokenizer() {
  if (!tokenizer_) {
    tokenizer_ = open_tokenizer(model_, "without a tokenizer, give token ids: --ids 1,5,9");
  }
  return *tokenizer_;
}

void PromptEncoder::encode_messages(const OrderedJson& messages, const ChatOptions& options,
                                    EncodedPrompt& prompt) {
  auto chat = chats_.write(tokenizer(), messages, options, log_);
  const auto ids = chats_.encode(tokenizer(), chat, parse_special_);
  prompt.ids.assign(ids.begin(), ids.end());
  prompt.text = std::move(chat.text);
}

void PromptEncoder::encode_text(const PromptSource& source, EncodedPrompt& prompt) {
  if (const auto* chat = std::get_if<ChatMessages>(&source.content)) {
    try {
      encode_messages(chat->messages, chat->options, prompt);
    } catch (const Error& error) {
      throw Error(error.kind(), str_cat(source.where, ": ", error.what()), error.hint());
    }
    return;
  }
  const auto& text = std::get<std::string>(source.content);
  if (chat_) {
    encode_messages(user_message(text), {}, prompt);
    return;
  }
  const auto ids = tokenizer().encode(text);
  prompt.ids.assign(ids.begin(), ids.end());
  prompt.text = text;
}

EncodedPrompt PromptEncoder::encode(const PromptSource& source) {
  EncodedPrompt prompt;
  if (const auto* given = std::get_if<std::vector<TokenId>>(&source.content)) {
    prompt.ids.assign(given->begin(), given->end());
    if (choice_ == BosChoice::yes) {
      if (!config_bos_) config_bos_ = tokenizer().special().bos;
      add_bos(prompt, config_bos_);
    }
  } else {
    encode_text(source, prompt);
    if (const auto bos = bos_before_text(choice_, tokenizer())) add_bos(prompt, bos);
  }
  if (prompt.ids.empty()) {
    throw input_error(str_cat(source.where, ": has no token"),
                      "give at least one character that the vocabulary has, or one id");
  }
  check(prompt, source.where);
  if (tokenizer_) add_pieces(prompt);
  return prompt;
}

std::optional<std::int64_t> PromptEncoder::text_bos() {
  if (choice_ == BosChoice::no) return std::nullopt;
  try {
    static_cast<void>(tokenizer());
  } catch (const Error&) {
    return bos_;
  }
  return bos_before_text(choice_, *tokenizer_);
}

void PromptEncoder::add_bos(EncodedPrompt& prompt, std::optional<std::int64_t> token) {
  if (!token) {
    throw usage_error("--bos yes: this model's tokenizer has no BOS token", "use --bos no or auto");
  }
  bos_ = token;
  if (!prompt.ids.empty() && prompt.ids.front() == *token) return;
  prompt.ids.insert(prompt.ids.begin(), *token);
  prompt.bos_added = true;
}

void PromptEncoder::check(EncodedPrompt& prompt, const std::string& where) const {
  for (std::size_t i = 0; i < prompt.ids.size(); ++i) {
    const auto id = prompt.ids[i];
    require_input(id >= 0 && id < vocabulary_, where, ": token ", i, " has id ", id,
                  ", which is outside the model's vocabulary of ", vocabulary_, " (0 to ",
                  vocabulary_ - 1, ")");
  }
  const auto length = static_cast<std::int64_t>(prompt.ids.size());
  prompt.beyond_context = context_ > 0 && length > context_;
  if (prompt.beyond_context) {
    log_.warning(str_cat(where, ": ", length, " tokens, more than the model's context of ",
                         context_, ": it was not trained for the rest"));
  }
}

void PromptEncoder::add_pieces(EncodedPrompt& prompt) const {
  for (const auto id : prompt.ids) {
    // Ids given by hand may lie outside; the model says so with its own limit.
    const bool known = id < tokenizer_->vocabulary_size();
    prompt.pieces.push_back(known ? tokenizer_->piece(static_cast<TokenId>(id)) : "");
    prompt.shown.push_back(known ? tokenizer_->piece_bytes(static_cast<TokenId>(id)) : "");
  }
}

}  // namespace onset::app
