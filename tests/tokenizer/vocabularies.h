// Tokenizers that several tests use, opened once for the whole program.
#pragma once

#include <string>
#include <vector>

#include "onset/tokenizer/tokenizer.h"
#include "support/support.h"

namespace onset::testing {

[[nodiscard]] const Tokenizer& qwen3();
[[nodiscard]] const Tokenizer& llama3();
// Null where the demonstration model was not fetched.
[[nodiscard]] const Tokenizer* smollm2();
// Families whose vocabulary is at hand: "qwen3", "llama3_1", "smollm2".
[[nodiscard]] const Tokenizer* tokenizer_of(const std::string& family);

[[nodiscard]] std::vector<TokenId> ids_of(const OrderedJson& array);

}  // namespace onset::testing
