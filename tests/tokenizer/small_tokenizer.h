// Tokenizers of a few hundred pieces, made by the test.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onset/base/json.h"
#include "onset/tokenizer/tokenizer.h"
#include "support/support.h"

namespace onset::testing {

using MergeList = std::vector<std::pair<std::string, std::string>>;

// The character that stands for a byte (GPT-2's bytes_to_unicode).
[[nodiscard]] std::string spelled_byte(unsigned byte);
[[nodiscard]] std::string spelled(std::string_view bytes);

// The 256 bytes as ids 0 to 255, then a piece for every merge that makes a new one; no splitting.
// Merges are given in bytes.
[[nodiscard]] Json small_tokenizer(const MergeList& merges);
[[nodiscard]] Json added_token(const std::string& content, TokenId id);
// The pre_tokenizer with this regex before ByteLevel.
[[nodiscard]] Json split_by(const std::string& regex);

[[nodiscard]] Tokenizer open_json(const Json& tokenizer, const Json& config = nullptr);
[[nodiscard]] std::string error_of_json(const Json& tokenizer, const Json& config = nullptr);

}  // namespace onset::testing
