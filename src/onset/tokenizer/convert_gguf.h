// A GGUF file's tokenizer as the files of a Hugging Face folder.
#pragma once

#include <filesystem>
#include <optional>

#include "onset/base/json.h"

namespace onset {

struct TokenizerFiles {
  OrderedJson tokenizer;         // tokenizer.json
  OrderedJson tokenizer_config;  // tokenizer_config.json, the chat template among it
  OrderedJson eos;               // the ids that end generation, null where there are none
};

// Tokenizer::open() and transformers give the same ids for them as Tokenizer::open() for the GGUF.
// The merges of a SentencePiece vocabulary are those that transformers' own conversion makes: where
// pieces of one score overlap, those two may choose another one first.
// Nothing where the file has no tokenizer. Throws an input error as Tokenizer::open() does.
[[nodiscard]] std::optional<TokenizerFiles> convert_gguf_tokenizer(
    const std::filesystem::path& path);

}  // namespace onset
