#include "onset/tokenizer/charsmap.h"

#include "onset/base/error.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// Fields of a unit, as Darts-clone packs them.
bool has_leaf(std::uint32_t unit) { return ((unit >> 8) & 1U) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }

std::uint32_t read_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) {
    value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  require_input(bytes.size() > 4, where, ": the table of characters is cut off");
  const std::size_t size = read_u32(bytes, 0);
  require_input(size <= bytes.size() - 4 && size % 4 == 0 && size >= 4, where,
                ": the table of characters has a trie of ", size, " bytes, expected at most ",
                bytes.size() - 4);
  units_.reserve(size / 4);
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(read_u32(bytes, at));
  results_ = bytes.substr(4 + size);
  require_input(is_valid_utf8(results_), where, ": the table of characters holds bad UTF-8");
  require_input(!results_.empty() && results_.back() == '\0', where,
                ": the table of characters is cut off");
}

Charsmap::Match Charsmap::find(std::string_view text) const {
  Match match;
  std::uint32_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    // A broken table ends the search; its strings would not be found either.
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) break;
    const std::uint32_t start = value_of(units_[at]);
    if (start >= results_.size()) break;
    match = {i + 1, std::string_view(results_.c_str() + start)};
  }
  return match;
}

}  // namespace onset
