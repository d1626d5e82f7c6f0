// Where a text may be cut before byte-pair encoding without changing a single id: between two
// characters that stand side by side in no piece, as no merge can ever join what is left and right
// of them. Words are then short and come back, which the cache of pieces thrives on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "onset/tokenizer/bpe.h"
#include "onset/tokenizer/normalizer.h"
#include "onset/tokenizer/unicode.h"

namespace onset {

class JoinTable {
 public:
  // `piece`: what a merge may make, valid UTF-8.
  void add(std::string_view piece);
  // Neighbours that are no pieces, having no id below `size`, may become one unknown token.
  void add_unknown(const CharTable& chars, std::int64_t size);
  // Appends the end of every part of `text`, which is not empty; `offset` is added to each.
  void split(std::string_view text, std::size_t offset, std::vector<std::size_t>& ends) const;

 private:
  // Every character of ASCII, the space symbol, and all others as one.
  static constexpr std::size_t kinds = 130;
  [[nodiscard]] static std::size_t kind_of(char32_t code) {
    constexpr char32_t space_code = 0x2581;
    if (code < 0x80) return code;
    return code == space_code ? 128 : 129;
  }
  void join(std::size_t left, std::size_t right) {
    joins_[left][right / 64] |= std::uint64_t{1} << (right % 64);
  }
  [[nodiscard]] bool may_join(std::size_t left, std::size_t right) const {
    return ((joins_[left][right / 64] >> (right % 64)) & 1U) != 0;
  }

  std::array<std::array<std::uint64_t, 3>, kinds> joins_{};
};

}  // namespace onset
