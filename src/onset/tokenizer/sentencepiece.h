// BPE as SentencePiece does it: the neighbours whose join has the highest score are merged first,
// the leftmost where scores are equal, whatever pieces they are joins of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/tokenizer_data.h"

namespace onset {

// The numbers of both tokenizer.model and tokenizer.ggml.token_type.
enum class PieceType : std::int64_t { normal = 1, unknown, control, user_defined, unused, byte };

struct ScoredPiece {
  std::string_view text;  // valid UTF-8
  float score = 0;
  PieceType type = PieceType::normal;
};

// Makes vocabulary, merges and starting symbols of `data` from pieces whose ids are their places.
// Without byte fallback a character that is in no piece is unknown; neighbouring ones are one.
// Throws an input error "WHERE: ...".
void set_scored_pieces(TokenizerData& data, const std::vector<ScoredPiece>& pieces,
                       bool byte_fallback, const std::string& where);

}  // namespace onset
