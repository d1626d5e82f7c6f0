#include "onset/tokenizer/joins.h"

namespace onset {

void JoinTable::add(std::string_view piece) {
  std::size_t left = kinds;
  for (std::size_t at = 0; at < piece.size();) {
    const DecodedChar next = decode_char(piece, at);
    const std::size_t right = kind_of(next.code);
    if (left < kinds) join(left, right);
    left = right;
    at += next.length;
  }
}

void JoinTable::add_unknown(const CharTable& chars, std::int64_t size) {
  const auto is_unknown = [&](char32_t code) {
    const TokenId id = chars.find(code);
    return id < 0 || id >= size;
  };
  std::vector<std::size_t> unknown = {kinds - 1};
  for (char32_t code = 0; code < 0x80; ++code) {
    if (is_unknown(code)) unknown.push_back(code);
  }
  if (is_unknown(decode_char(space_symbol, 0).code)) unknown.push_back(kinds - 2);
  for (const std::size_t left : unknown) {
    for (const std::size_t right : unknown) join(left, right);
  }
}

void JoinTable::split(std::string_view text, std::size_t offset,
                      std::vector<std::size_t>& ends) const {
  std::size_t left = kinds;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar next = decode_char(text, at);
    const std::size_t right = kind_of(next.code);
    if (left < kinds && !may_join(left, right)) ends.push_back(offset + at);
    left = right;
    at += next.length;
  }
  ends.push_back(offset + text.size());
}

}  // namespace onset
