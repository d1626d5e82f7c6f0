// What a tokenizer does to a text before it is cut into pieces: the normalizer part of
// tokenizer.json as a list of steps, and the rule of SentencePiece.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/charsmap.h"
#include "onset/tokenizer/regex.h"

namespace onset {

// Stands for a space in pieces of SentencePiece: U+2581.
constexpr std::string_view space_symbol = "\u2581";

// Where a space is put before a text that has none of its own there.
enum class PrefixScheme {
  never,
  first,   // before the text, not behind a special token inside it
  always,  // behind every special token too
};

// How SentencePiece normalises: its NormalizerSpec.
struct SentencePieceRule {
  PrefixScheme dummy_prefix = PrefixScheme::always;
  bool remove_extra_whitespaces = false;  // runs become one space, those at the ends vanish
  bool escape_whitespaces = true;         // spaces become space_symbol
  std::shared_ptr<const Charsmap> charsmap;
};

struct NormalizerStep {
  enum class Kind {
    nfc,
    nfd,
    nfkc,
    nfkd,
    lowercase,
    strip_accents,
    strip,    // white space, at the left and right as said
    prepend,  // `text` before what is not empty
    append,
    replace,  // `pattern` (or the regex) by `text`
    sentencepiece,
  };
  Kind kind = Kind::nfc;
  std::string pattern;
  std::optional<Regex> regex;
  std::string text;
  bool left = true;
  bool right = true;
  SentencePieceRule rule;
};

class Normalizer {
 public:
  struct Scratch {
    std::string text;
    std::string other;
  };

  std::vector<NormalizerStep> steps;

  // Gives `text` itself or a view into `scratch`. `text` is valid UTF-8; `first` says whether it
  // begins where the whole text does.
  [[nodiscard]] std::string_view run(std::string_view text, bool first, Scratch& scratch) const;
};

}  // namespace onset
