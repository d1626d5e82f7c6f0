// Cuts a text into the pieces that byte-pair encoding works on: the pre_tokenizer part of
// tokenizer.json as a list of steps, each inside the pieces of the one before.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/normalizer.h"
#include "onset/tokenizer/regex.h"
#include "onset/tokenizer/splitters.h"

namespace onset {

// What becomes of the matches of a pattern.
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

// All matches of a rule in valid UTF-8, from left to right, not empty, not overlapping.
using Finder = std::vector<Regex::Match> (*)(std::string_view text);

// The rules of the reference's Whitespace, WhitespaceSplit, Digits and Punctuation.
[[nodiscard]] std::vector<Regex::Match> find_words_and_signs(std::string_view text);
[[nodiscard]] std::vector<Regex::Match> find_white_space(std::string_view text);
[[nodiscard]] std::vector<Regex::Match> find_numbers(std::string_view text);
[[nodiscard]] std::vector<Regex::Match> find_punctuation(std::string_view text);

class JoinTable;

struct PretokenizerStep {
  // One of these: a known regex, another one, a rule, a fixed string, or places where nothing
  // joins.
  const KnownPattern* known = nullptr;
  std::shared_ptr<const JoinTable> joins;
  std::optional<Regex> regex;
  Finder finder = nullptr;
  std::string literal;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // the stretches between the matches count as the matches
  // Puts a space before every piece that does not begin with one; nothing is split.
  bool add_prefix_space = false;
  // Metaspace: spaces become this, which is also put before a piece that does not begin with it,
  // as `prefix` says; nothing is split.
  std::string metaspace;
  PrefixScheme prefix = PrefixScheme::never;
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
  // end of each of its pieces; they cover it. `text` is valid UTF-8; `first` says whether it begins
  // where the whole text does.
  [[nodiscard]] std::string_view run(std::string_view text, Scratch& scratch,
                                     bool first = true) const;
};

}  // namespace onset
