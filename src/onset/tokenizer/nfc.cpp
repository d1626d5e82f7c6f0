#include "onset/tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "onset/base/error.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// Starters that NFC leaves as they are and that no composition joins to what stands before them, so
// that a text may be cut before each. Only scripts that are common: the rest takes the slow path.
constexpr std::array<CodeRange, 17> inert_ranges = {{{0x0, 0x2FF},
                                                     {0x386, 0x386},
                                                     {0x388, 0x3FF},
                                                     {0x400, 0x482},
                                                     {0x48A, 0x52F},
                                                     {0x5D0, 0x5EA},
                                                     {0x621, 0x64A},
                                                     {0x904, 0x939},
                                                     {0xE01, 0xE30},
                                                     {0x2010, 0x2027},
                                                     {0x3001, 0x3029},
                                                     {0x3041, 0x3096},
                                                     {0x30A1, 0x30FC},
                                                     {0x4E00, 0x9FA5},
                                                     {0xAC00, 0xD7A3},
                                                     {0xFF01, 0xFFDC},
                                                     {0x1F300, 0x1FAFF}}};

bool is_inert(char32_t code) {
  for (const auto& range : inert_ranges) {
    if (code <= range.high) return code >= range.low;
  }
  return false;
}

// Starters that react with nothing before and behind them, where utf8proc thinks otherwise.
bool is_barrier(char32_t code) {
  constexpr char32_t before_trailing_jamo = 0x11A7;  // swallowed behind a Hangul syllable
  constexpr char32_t dives_akuru_vowel = 0x11930;    // composed with U+11935 since Unicode 13
  return code == before_trailing_jamo || code == dives_akuru_vowel || is_nfc_class0(code);
}

int combining_class(utf8proc_int32_t code) {
  if (is_nfc_class0(static_cast<char32_t>(code))) return 0;
  return static_cast<int>(utf8proc_get_property(code)->combining_class);
}

void decompose(std::string_view text, unsigned how, std::vector<utf8proc_int32_t>& codes) {
  constexpr char32_t dives_akuru_o = 0x11938;  // not yet in the tables of the reference
  std::array<utf8proc_int32_t, 32> parts{};    // the longest decomposition has 18
  int boundary = 0;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar next = decode_char(text, at);
    at += next.length;
    if (next.code == dives_akuru_o) {
      codes.push_back(static_cast<utf8proc_int32_t>(next.code));
      continue;
    }
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(next.code), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()),
                                static_cast<utf8proc_option_t>(how), &boundary);
    codes.insert(codes.end(), parts.begin(), parts.begin() + std::max<std::ptrdiff_t>(count, 0));
  }
}

// Puts the marks between two starters into the order of their classes. utf8proc's own ordering is
// quadratic in their number.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  for (auto at = codes.begin(); at != codes.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    const auto end =
        std::find_if(at, codes.end(), [](auto code) { return combining_class(code) == 0; });
    std::stable_sort(at, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

void append_composed(std::string& out, std::string_view text) {
  if (text.empty()) return;
  std::vector<utf8proc_int32_t> codes;
  decompose(text, UTF8PROC_DECOMPOSE, codes);
  order_marks(codes);
  const auto count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (count < 0) throw input_error("the text cannot be normalised");
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(codes[i]));
}

// Normalises text[start, end), where `start` is a place to cut and `end` too.
void append_run(std::string& out, std::string_view text, std::size_t start, std::size_t end) {
  std::size_t from = start;
  for (std::size_t at = start; at < end;) {
    const DecodedChar next = decode_char(text, at);
    if (is_barrier(next.code)) {
      append_composed(out, text.substr(from, at - from));
      out.append(text, at, next.length);
      from = at + next.length;
    }
    at += next.length;
  }
  append_composed(out, text.substr(from, end - from));
}

// First code point from `at` on that is not inert.
std::size_t skip_inert(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const DecodedChar next = decode_char(text, at);
    if (!is_inert(next.code)) break;
    at += next.length;
  }
  return at;
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  std::size_t odd = skip_inert(text, 0);
  if (odd == text.size()) return text;
  storage.clear();
  storage.reserve(text.size());
  std::size_t copied = 0;
  while (odd < text.size()) {
    // The starter before the odd stretch may compose with it.
    const std::size_t start = odd > copied ? previous_char(text, odd) : odd;
    std::size_t end = odd;
    while (end < text.size()) {
      const DecodedChar next = decode_char(text, end);
      if (is_inert(next.code)) break;
      end += next.length;
    }
    storage.append(text, copied, start - copied);
    append_run(storage, text, start, end);
    copied = end;
    odd = skip_inert(text, end);
  }
  storage.append(text, copied);
  return storage;
}

std::string_view decomposed(std::string_view text, bool compatibility, std::string& storage) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  unsigned how = UTF8PROC_DECOMPOSE;
  if (compatibility) how |= UTF8PROC_COMPAT;
  decompose(text, how, codes);
  order_marks(codes);
  storage.clear();
  for (const auto code : codes) append_utf8(storage, static_cast<char32_t>(code));
  return storage;
}

}  // namespace onset
