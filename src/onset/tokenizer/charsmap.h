// The table of a SentencePiece normaliser (precompiled_charsmap): strings and what they become.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

// A double-array trie (Darts-clone) over byte strings, and the results it points at.
class Charsmap {
 public:
  struct Match {
    std::size_t length = 0;  // of the longest string that the text begins with; 0: none
    std::string_view result;
  };

  // Throws an input error "WHERE: ..." when the table is broken.
  Charsmap(std::string_view bytes, const std::string& where);
  [[nodiscard]] Match find(std::string_view text) const;

 private:
  std::vector<std::uint32_t> units_;
  std::string results_;  // each ends with a NUL
};

}  // namespace onset
