// Reads tokenizer.json: its vocabulary and merges, which are nearly all of it, go straight into
// flat tables; the rest becomes a document.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onset/base/json.h"
#include "onset/tokenizer/vocabulary.h"

namespace onset {

struct TokenizerFile {
  // Halves of a merge as ranges of `text`: [start, middle) and [middle, end).
  struct MergeText {
    std::uint32_t start;
    std::uint32_t middle;
    std::uint32_t end;
  };

  Json document;  // without model.vocab (where it is an object) and model.merges
  Vocabulary vocabulary;
  bool has_vocabulary = false;
  std::string merge_text;
  std::vector<MergeText> merges;
};

// Throws an input error "WHERE: ...".
[[nodiscard]] TokenizerFile read_tokenizer_file(std::string_view text, Spelling spelling,
                                                const std::string& where);

}  // namespace onset
