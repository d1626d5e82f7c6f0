// Cuts a text into the pieces that byte-pair encoding works on: the pre_tokenizer part of
// tokenizer.json as a list of steps, each inside the pieces of the one before.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/regex.h"
#include "onset/tokenizer/splitters.h"

namespace onset {

// What becomes of the matches of a pattern.
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct PretokenizerStep {
  // One of the three: a known regex, another one, or a fixed string.
  const KnownPattern* known = nullptr;
  std::optional<Regex> regex;
  std::string literal;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // the stretches between the matches count as the matches
  // Puts a space before every piece that does not begin with one; nothing is split.
  bool add_prefix_space = false;
};

class Pretokenizer {
 public:
  struct Scratch {
    std::string text;
    std::string other;
    std::vector<std::size_t> ends;
    std::vector<std::size_t> other_ends;
  };

  std::vector<PretokenizerStep> steps;

  // Gives the text to cut, `text` itself or a changed copy in `scratch`, and in scratch.ends the
  // end of each of its pieces; they cover it. `text` is valid UTF-8.
  [[nodiscard]] std::string_view run(std::string_view text, Scratch& scratch) const;
};

}  // namespace onset
