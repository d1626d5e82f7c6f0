// The known pre-tokenizer regexes as matchers written by hand on the table of classes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace onset {

// A matcher takes a piece of valid UTF-8, not empty, and appends the end of every piece it splits
// it into; `offset` is added to each. The last end is offset + text.size(). Look-ahead sees the end
// of `text` as the end of the input.
using Splitter = void (*)(std::string_view text, std::size_t offset,
                          std::vector<std::size_t>& ends);

struct KnownPattern {
  std::string_view name;
  std::string_view regex;  // as tokenizer.json spells it
  bool covers;             // every character lies in a match
  Splitter split;
};

// Every row's matches and the stretches between them are the same as those of its regex.
[[nodiscard]] const std::vector<KnownPattern>& known_patterns();
// By the exact text of the regex, or by name; null when unknown.
[[nodiscard]] const KnownPattern* find_pattern(std::string_view regex);
[[nodiscard]] const KnownPattern& pattern_named(std::string_view name);

}  // namespace onset
