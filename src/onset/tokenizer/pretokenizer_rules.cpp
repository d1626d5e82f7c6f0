// Pre-tokenizers of the reference that go by the class of each character.
#include "onset/tokenizer/pretokenizer.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// Every run of characters for which `kind` gives the same number above 0; with `single`, every
// such character alone.
template <typename Kind>
std::vector<Regex::Match> find_runs(std::string_view text, bool single, Kind kind) {
  std::vector<Regex::Match> matches;
  int before = 0;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar next = decode_char(text, at);
    const int here = kind(next.code);
    if (here > 0 && here == before && !single) {
      matches.back().end += next.length;
    } else if (here > 0) {
      matches.push_back({at, at + next.length});
    }
    before = here;
    at += next.length;
  }
  return matches;
}

bool is_ascii_sign(char32_t code) {
  return code < 0x80 &&
         (char_class(code) == CharClass::punctuation || char_class(code) == CharClass::symbol);
}

}  // namespace

std::vector<Regex::Match> find_words_and_signs(std::string_view text) {
  return find_runs(text, /*single=*/false, [](char32_t code) {
    if (is_word(code)) return 1;
    return char_class(code) == CharClass::space ? 0 : 2;
  });
}

std::vector<Regex::Match> find_white_space(std::string_view text) {
  return find_runs(text, /*single=*/true,
                   [](char32_t code) { return char_class(code) == CharClass::space ? 1 : 0; });
}

std::vector<Regex::Match> find_numbers(std::string_view text) {
  return find_runs(text, /*single=*/true,
                   [](char32_t code) { return char_class(code) == CharClass::number ? 1 : 0; });
}

std::vector<Regex::Match> find_punctuation(std::string_view text) {
  return find_runs(text, /*single=*/true, [](char32_t code) {
    return is_ascii_sign(code) || char_class(code) == CharClass::punctuation ? 1 : 0;
  });
}

}  // namespace onset
