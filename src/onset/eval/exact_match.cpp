#include "onset/eval/exact_match.h"

#include <algorithm>

#include "onset/eval/letter_case.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

}  // namespace

std::string exact_match_form(std::string_view text, const ExactMatchOptions& options) {
  std::string form = lossy_utf8(text);
  for (const TextPattern& pattern : options.regexes_to_ignore) form = pattern.remove_from(form);
  if (options.ignore_case) form = lower_case(form);
  if (options.ignore_punctuation) std::erase_if(form, is_ascii_punctuation);
  return form;
}

bool exact_match(std::string_view answer, std::string_view target,
                 const ExactMatchOptions& options) {
  return exact_match_form(answer, options) == exact_match_form(target, options);
}

const ExactMatchOptions& gsm8k_exact_match() {
  static const ExactMatchOptions options = [] {
    ExactMatchOptions made;
    for (const char* pattern : {",", "\\$", "(?s).*#### ", "\\.$"}) {
      made.regexes_to_ignore.emplace_back(pattern, "gsm8k");
    }
    made.ignore_case = true;
    return made;
  }();
  return options;
}

}  // namespace onset
