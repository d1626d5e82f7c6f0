// The parts of tokenizer.json around the model: normalizer, pre_tokenizer, post_processor, decoder
// and added_tokens. A part that onset does not know is an input error that names it.
#pragma once

#include <string>

#include "onset/base/json.h"
#include "onset/tokenizer/tokenizer_data.h"

namespace onset {

void read_normalizer(const Json& document, TokenizerData& data, const std::string& where);
void read_pretokenizer(const Json& document, TokenizerData& data, const std::string& where);
void read_decoder(const Json& document, const std::string& where);
void read_added_tokens(const Json& document, TokenizerData& data, const std::string& where);
// Needs the added tokens.
void read_post_processor(const Json& document, TokenizerData& data, const std::string& where);

}  // namespace onset
