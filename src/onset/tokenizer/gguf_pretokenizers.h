// The pre-tokenizers that `tokenizer.ggml.pre` names.
#pragma once

#include <string>
#include <vector>

#include "onset/tokenizer/pretokenizer.h"

namespace onset {

struct GgufPretokenizer {
  Pretokenizer pretokenizer;
  bool nfc = false;  // the model's own tokenizer normalises, which the file does not say
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

// Throws an input error "WHERE: ..." that lists the known names.
[[nodiscard]] GgufPretokenizer gguf_pretokenizer(const std::string& name, const std::string& where);
// Its steps as tokenizer.json spells them: regexes whose matches stand alone, each inside the
// pieces of the one before.
[[nodiscard]] std::vector<std::string> gguf_pretokenizer_regexes(const std::string& name,
                                                                 const std::string& where);

}  // namespace onset
