// From the options to token ids: prompts are read once, then encoded for each model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "chats.h"
#include "onset/base/json.h"
#include "onset/base/log.h"
#include "onset/model/config.h"
#include "onset/tokenizer/chat.h"
#include "onset/tokenizer/tokenizer.h"
#include "options.h"

namespace onset::app {

struct ChatMessages {
  OrderedJson messages;
  ChatOptions options;
};

// A prompt before it meets a tokenizer.
struct PromptSource {
  std::string where;  // "--prompt 2", "rows.jsonl:7", for messages
  std::variant<std::string, std::vector<TokenId>, ChatMessages> content;
};

struct EncodedPrompt {
  std::string text;  // as encoded: a chat's rendered text; empty for ids
  std::vector<std::int64_t> ids;
  std::vector<std::string> pieces;  // as the vocabulary spells them; empty without a tokenizer
  std::vector<std::string> shown;   // bytes of each piece, for tables; as pieces
  bool bos_added = false;
  bool beyond_context = false;  // longer than what the model was trained for
};

// "--ids 2", or "--ids" where there is one.
[[nodiscard]] std::string numbered_option(const std::string& option, std::size_t index,
                                          std::size_t count);

// Tokenizer::open; an input error without a hint of its own gets `hint`.
[[nodiscard]] Tokenizer open_tokenizer(const std::filesystem::path& model, const std::string& hint);

// Which of the fields of a JSONL row is wanted: `text_first` takes messages, text, ids in that
// order; `ids_only` takes ids.
enum class RowFields { text_first, ids_only };

// Eight short texts of different kinds; the first is the paper's.
[[nodiscard]] const std::vector<std::string>& built_in_texts();

// A usage error where an option for chats is given (the name of a format, --parse-special) and
// nothing is a chat: neither --chat nor rows with messages.
void refuse_idle_chat_options(const std::string& format, bool parse_special, bool chat,
                              const std::vector<std::string>& jsonl);

// All prompts of the options: texts, then ids, then files. Usage errors name the option, input
// errors the file and line.
[[nodiscard]] std::vector<PromptSource> read_prompts(const PromptOptions& options);

// The same; the built-in texts where the options name none.
[[nodiscard]] std::vector<PromptSource> prompts_or_built_in(const PromptOptions& options);

// The rows of one JSONL file, one call each, as they are read.
void for_each_row(const std::string& path, RowFields fields,
                  const std::function<void(PromptSource)>& take);

// One row. Input errors name `where`.
[[nodiscard]] PromptSource parse_row(const std::string& line, const std::string& where,
                                     RowFields fields);

// "1,5,9", also with spaces or in brackets; usage errors for anything else, "1,,2" too.
[[nodiscard]] std::vector<TokenId> parse_ids(const std::string& where, std::string_view text);

// The id that is put before a text: what the choice and the tokenizer's configuration say. A usage
// error where it is asked for and the tokenizer has none.
[[nodiscard]] std::optional<std::int64_t> bos_before_text(BosChoice choice,
                                                          const Tokenizer& tokenizer);

// Encodes prompts for one model. The tokenizer is opened when the first text needs it.
class PromptEncoder {
 public:
  // `config` gives the BOS for ids where no tokenizer is, and what the model can take.
  PromptEncoder(std::filesystem::path model, const PromptOptions& options,
                const ModelConfig& config, Log log);

  // Warns where the prompt is longer than the model's context. Input errors name the prompt.
  [[nodiscard]] EncodedPrompt encode(const PromptSource& source);
  // The id put before each text, if any; nothing when no prompt needed a tokenizer or a BOS.
  [[nodiscard]] std::optional<std::int64_t> bos() const { return bos_; }
  // bos_before_text, whether a text was encoded or not; where there is no tokenizer, bos().
  [[nodiscard]] std::optional<std::int64_t> text_bos();
  [[nodiscard]] const Tokenizer& tokenizer();

 private:
  // Fills text and ids.
  void encode_text(const PromptSource& source, EncodedPrompt& prompt);
  void encode_messages(const OrderedJson& messages, const ChatOptions& options,
                       EncodedPrompt& prompt);
  void add_bos(EncodedPrompt& prompt, std::optional<std::int64_t> token);
  void add_pieces(EncodedPrompt& prompt) const;
  void check(EncodedPrompt& prompt, const std::string& where) const;

  std::filesystem::path model_;
  BosChoice choice_;
  bool chat_;
  bool parse_special_;
  std::optional<std::int64_t> config_bos_;
  std::int64_t vocabulary_;
  std::int64_t context_;
  Log log_;
  std::optional<std::int64_t> bos_;
  std::optional<Tokenizer> tokenizer_;
  ChatWriter chats_;
};

}  // namespace onset::app
