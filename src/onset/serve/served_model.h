// What a server serves. Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/json.h"
#include "onset/tokenizer/chat.h"
#include "onset/tokenizer/tokenizer.h"

namespace onset {

class Model;

struct ServedModel {
  const Model& model;
  const Tokenizer& tokenizer;
  std::string id;                         // its name in the API
  std::optional<ChatFormat> chat_format;  // none: /v1/chat/completions is refused
  std::int64_t context = 0;               // the longest sequence, prompt and answer; 0: not known
  bool parse_special = false;             // special tokens are also found in what messages say
  std::uint64_t seed = 0;                 // of requests that give none; 0: each draws its own
};

// Ids of a raw text: special tokens in it are found, BOS is put before it where the tokenizer's
// configuration says so, and is never doubled.
[[nodiscard]] std::vector<std::int64_t> encode_raw(const ServedModel& served,
                                                   std::string_view text);
// Ids of a conversation, as far as `options` says; BOS as above. Throws an ApiError on "messages".
[[nodiscard]] std::vector<std::int64_t> encode_messages(const ServedModel& served,
                                                        const OrderedJson& messages,
                                                        const ChatOptions& options);

}  // namespace onset
