#include "onset/eval/letter_case.h"

#include <utf8proc.h>

#include "onset/tokenizer/unicode.h"

namespace onset {

std::string lower_case(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_char(text, at);
    at += c.length;
    append_utf8(lower,
                static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code))));
  }
  return lower;
}

}  // namespace onset
