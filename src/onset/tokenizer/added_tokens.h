// Tokens that are found in the text itself, before it is cut into pieces ("<|im_start|>").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/tokenizer.h"

namespace onset {

struct AddedToken {
  std::string content;
  TokenId id = -1;
  bool special = false;      // left out by decode's skip_special
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for in the normalised text
  bool always = false;       // found also where EncodeOptions::parse_special is off
};

class AddedTokenFinder {
 public:
  struct Match {
    std::size_t start;
    std::size_t end;  // of what the token takes from the text, white space included
    TokenId id;
  };

  AddedTokenFinder() = default;
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  [[nodiscard]] bool empty() const { return tokens_.empty(); }
  // Leftmost, and the longest where several begin at one place; `text` is valid UTF-8. `literal`:
  // where special tokens are text.
  void find(std::string_view text, std::vector<Match>& matches,
            const LiteralText* literal = nullptr) const;

 private:
  struct Hit {
    std::size_t end;
    std::int32_t token;  // -1: none
  };
  // Tokens sorted by content, so that those with a common beginning are neighbours.
  [[nodiscard]] std::size_t next_candidate(std::string_view text, std::size_t at) const;
  [[nodiscard]] Hit longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  std::array<bool, 256> first_byte_{};
  int single_first_byte_ = -1;  // where all begin with the same one
};

}  // namespace onset
