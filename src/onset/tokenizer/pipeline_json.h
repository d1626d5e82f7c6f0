// The parts of tokenizer.json around the model: normalizer, pre_tokenizer, post_processor, decoder
// and added_tokens. A part that onset does not know is an input error that names it.
#pragma once

#include <string>

#include "onset/base/json.h"
#include "onset/tokenizer/tokenizer_data.h"

namespace onset {

void read_normalizer(const Json& document, TokenizerData& data, const std::string& where);
void read_pretokenizer(const Json& document, TokenizerData& data, const std::string& where);
// Needs the vocabulary: one of bytes has a decoder of its own.
void read_decoder(const Json& document, TokenizerData& data, const std::string& where);
void read_added_tokens(const Json& document, TokenizerData& data, const std::string& where);
// Needs the added tokens.
void read_post_processor(const Json& document, TokenizerData& data, const std::string& where);

// How the vocabulary is spelled: in bytes where the pre_tokenizer holds ByteLevel.
[[nodiscard]] Spelling spelling_of_file(const Json& document, const std::string& where);

// Parts of Metaspace, as pre-tokenizer and as decoder.
[[nodiscard]] std::string metaspace_of(const Json& part, const std::string& where);
[[nodiscard]] PrefixScheme prefix_scheme_of(const Json& part, const std::string& where);

// "pattern": the text, or the regex, to be replaced or split at.
struct PartPattern {
  std::string text;
  std::optional<std::string> regex;
};
[[nodiscard]] PartPattern pattern_of(const Json& part, const std::string& where);

}  // namespace onset
