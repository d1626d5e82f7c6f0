#include "onset/tokenizer/splitters.h"

#include <algorithm>
#include <stdexcept>

#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr unsigned bit(CharClass c) { return 1U << static_cast<unsigned>(c); }
constexpr unsigned letters = bit(CharClass::letter);
constexpr unsigned numbers = bit(CharClass::number);
constexpr unsigned marks = bit(CharClass::mark);
constexpr unsigned signs = bit(CharClass::punctuation) | bit(CharClass::symbol);
constexpr unsigned spaces = bit(CharClass::space);
constexpr unsigned every_class = 0x7F;
constexpr unsigned visible = every_class & ~(spaces | letters | numbers);  // [^\s\p{L}\p{N}]

// A place in the text: what stands there, and steps to what follows.
struct Place {
  std::string_view text;
  std::size_t at;
  char32_t code = 0;
  std::size_t length = 0;
  unsigned kind = 0;  // the bit of its class; 0 at the end

  Place(std::string_view t, std::size_t start) : text(t), at(start) { read(); }
  void read() {
    if (at >= text.size()) {
      kind = 0;
      code = 0;
      length = 0;
      return;
    }
    const DecodedChar decoded = decode_char(text, at);
    code = decoded.code;
    length = decoded.length;
    kind = bit(char_class(code));
  }
  [[nodiscard]] bool end() const { return at >= text.size(); }
  [[nodiscard]] bool is(unsigned kinds) const { return (kind & kinds) != 0; }
  [[nodiscard]] bool is_newline() const { return code == '\n' || code == '\r'; }
  [[nodiscard]] Place next() const { return {text, at + length}; }
  void step() {
    at += length;
    read();
  }
  void skip(unsigned kinds) {
    while (is(kinds)) step();
  }
  void skip_newlines() {
    while (!end() && is_newline()) step();
  }
};

// 's|'t|'re|'ve|'m|'ll|'d at an apostrophe: the end of the match, or 0. With `fold` in any case,
// U+017F (long s) being an s then.
std::size_t contraction(const Place& apostrophe, bool fold) {
  const auto letter = [&](const Place& place) -> char32_t {
    if (fold && place.code == 0x17F) return 's';
    const bool upper = place.code >= 'A' && place.code <= 'Z';
    return fold && upper ? place.code + 32 : place.code;
  };
  const Place first = apostrophe.next();
  if (first.end()) return 0;
  const char32_t a = letter(first);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return first.at + first.length;
  if (a != 'r' && a != 'v' && a != 'l') return 0;
  const Place second = first.next();
  if (second.end() || letter(second) != (a == 'l' ? U'l' : U'e')) return 0;
  return second.at + second.length;
}

// \s+(?!\S)|\s+ at white space: a run leaves its last character to what follows.
std::size_t spaces_before_text(Place place) {
  const std::size_t start = place.at;
  std::size_t last = start;
  while (place.is(spaces)) {
    last = place.at;
    place.step();
  }
  return place.end() || last == start ? place.at : last;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at white space.
std::size_t spaces_or_lines(const Place& start) {
  std::size_t after_newline = 0;
  Place place = start;
  while (place.is(spaces)) {
    const bool newline = place.is_newline();
    place.step();
    if (newline) after_newline = place.at;
  }
  return after_newline > 0 ? after_newline : spaces_before_text(start);
}

// Qwen 2 and 3 with one digit a piece, Llama 3 with up to three.
template <int max_digits>
std::size_t end_of_cl100k_piece(Place place) {
  if (place.code == '\'') {
    if (const std::size_t end = contraction(place, /*fold=*/true)) return end;
  }
  if (place.is(letters)) {
    place.skip(letters);
    return place.at;
  }
  if (place.is(numbers)) {
    for (int digits = 0; digits < max_digits && place.is(numbers); ++digits) place.step();
    return place.at;
  }
  Place next = place.next();
  if (next.is(letters) && !place.is_newline()) {
    next.skip(letters);
    return next.at;
  }
  if (place.code == ' ' && next.is(visible)) place = next;
  if (place.is(visible)) {
    place.skip(visible);
    place.skip_newlines();
    return place.at;
  }
  return spaces_or_lines(place);
}

std::size_t end_of_gpt2_piece(Place place) {
  if (place.code == '\'') {
    if (const std::size_t end = contraction(place, /*fold=*/false)) return end;
  }
  const Place next = place.next();
  if (place.code == ' ' && next.is(every_class & ~spaces)) place = next;
  for (const unsigned kinds : {letters, numbers, visible}) {
    if (place.is(kinds)) {
      place.skip(kinds);
      return place.at;
    }
  }
  return spaces_before_text(place);
}

template <std::size_t (*end_of_piece)(Place)>
void split_all(std::string_view text, std::size_t offset, std::vector<std::size_t>& ends) {
  for (std::size_t at = 0; at < text.size();) {
    at = end_of_piece(Place(text, at));
    ends.push_back(offset + at);
  }
}

template <int max_digits>
void split_numbers(std::string_view text, std::size_t offset, std::vector<std::size_t>& ends) {
  Place place(text, 0);
  while (!place.end()) {
    if (place.is(numbers)) {
      for (int digits = 0; digits < max_digits && place.is(numbers); ++digits) place.step();
    } else {
      place.skip(every_class & ~numbers);
    }
    ends.push_back(offset + place.at);
  }
}

bool is_cjk_or_kana(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF);
}

void split_cjk(std::string_view text, std::size_t offset, std::vector<std::size_t>& ends) {
  Place place(text, 0);
  while (!place.end()) {
    const bool inside = is_cjk_or_kana(place.code);
    while (!place.end() && is_cjk_or_kana(place.code) == inside) place.step();
    ends.push_back(offset + place.at);
  }
}

bool is_ascii_letter(char32_t code) {
  return (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

// The third pass of DeepSeek-V3. 0 where nothing matches.
std::size_t end_of_deepseek_match(Place place) {
  Place next = place.next();
  if (place.code < 0x80 && place.is(signs) && !next.end() && is_ascii_letter(next.code)) {
    while (!next.end() && is_ascii_letter(next.code)) next.step();
    return next.at;
  }
  if (!place.is(letters | marks | signs) && !place.is_newline() && next.is(letters | marks)) {
    place = next;
  }
  if (place.is(letters | marks)) {
    place.skip(letters | marks);
    return place.at;
  }
  if (place.code == ' ' && next.is(signs)) place = next;
  if (place.is(signs)) {
    place.skip(signs);
    place.skip_newlines();
    return place.at;
  }
  return place.is(spaces) ? spaces_or_lines(place) : 0;
}

void split_deepseek(std::string_view text, std::size_t offset, std::vector<std::size_t>& ends) {
  std::size_t unmatched = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Place place(text, at);
    const std::size_t end = end_of_deepseek_match(place);
    if (end == 0) {
      at += place.length;
      continue;
    }
    if (unmatched < at) ends.push_back(offset + at);
    ends.push_back(offset + end);
    at = end;
    unmatched = end;
  }
  if (unmatched < text.size()) ends.push_back(offset + text.size());
}

}  // namespace

const std::vector<KnownPattern>& known_patterns() {
  static const std::vector<KnownPattern> patterns = {
      {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
       /*covers=*/true, split_all<end_of_gpt2_piece>},
      {"qwen2",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       /*covers=*/true, split_all<end_of_cl100k_piece<1>>},
      {"llama3",
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       /*covers=*/true, split_all<end_of_cl100k_piece<3>>},
      {"digits", R"(\p{N})", /*covers=*/false, split_numbers<1>},
      {"digits by three", R"(\p{N}{1,3})", /*covers=*/false, split_numbers<3>},
      {"cjk", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", /*covers=*/false, split_cjk},
      {"deepseek3",
       "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
       "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
       /*covers=*/false, split_deepseek},
  };
  return patterns;
}

const KnownPattern* find_pattern(std::string_view regex) {
  const auto& patterns = known_patterns();
  const auto found = std::find_if(patterns.begin(), patterns.end(),
                                  [&](const KnownPattern& p) { return p.regex == regex; });
  return found == patterns.end() ? nullptr : &*found;
}

const KnownPattern& pattern_named(std::string_view name) {
  for (const auto& pattern : known_patterns()) {
    if (pattern.name == name) return pattern;
  }
  throw std::logic_error("no such pattern");
}

}  // namespace onset
