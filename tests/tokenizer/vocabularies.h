// Tokenizers that several tests use, opened once for the whole program.
#pragma once

#include <string>
#include <vector>

#include "onset/tokenizer/tokenizer.h"
#include "support/support.h"

namespace onset::testing {

[[nodiscard]] const Tokenizer& qwen3();
[[nodiscard]] const Tokenizer& llama3();
// SentencePiece's file alone, and with "legacy": false beside it.
[[nodiscard]] const Tokenizer& llama2();
[[nodiscard]] const Tokenizer& llama2_new_prefix();
// Null where the demonstration model was not fetched.
[[nodiscard]] const Tokenizer* smollm2();
// Families of the fixtures: "qwen3", "llama3_1", "deepseek_v3", "gpt2", "llama2_spm", "smollm2".
[[nodiscard]] const Tokenizer* tokenizer_of(const std::string& family);
// tests/data/tokenizers/vocabularies.tar.xz holds it as RELATIVE; opened once.
[[nodiscard]] const Tokenizer& opened(const std::string& relative);

[[nodiscard]] std::vector<TokenId> ids_of(const OrderedJson& array);

}  // namespace onset::testing
