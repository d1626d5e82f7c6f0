// How rows of a file become token ids; docs/train-data.md. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "onset/tokenizer/chat.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {

// Which end of a sequence that is too long stays (TRL's truncation_mode).
enum class TruncationMode { keep_start, keep_end };

struct DataOptions {
  std::int64_t vocabulary = 0;           // ids of rows lie below it; 0: as the tokenizer says
  const Tokenizer* tokenizer = nullptr;  // null: rows of ids alone can be read
  std::optional<ChatFormat> chat = {};   // of messages; without it a row of messages is an error
  std::optional<bool> enable_thinking = {};
  // A prompt that is a text becomes one message of the user, its completion one of the assistant.
  // A dialogue "\n\nHuman: ..\n\nAssistant: .." (Anthropic's HH-RLHF) becomes its messages.
  bool text_as_chat = false;
  std::string system = {};  // with text_as_chat: a first message
  // The token behind completions and texts; not given: as the tokenizer says.
  std::optional<std::int64_t> eos = {};
  // Names of the file's columns, by ours: {"prompt", "question"}.
  std::map<std::string, std::string> columns = {};
  std::int64_t limit = 0;  // the first so many rows; 0: all
};

}  // namespace onset
