// Regexes of tokenizers that onset has no matcher for, run by PCRE2 with the character classes of
// our own table.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

class Regex {
 public:
  struct Match {
    std::size_t start;
    std::size_t end;
  };

  // `pattern` in the syntax of tokenizer.json (Oniguruma). Throws an input error "WHERE: ..." when
  // it does not compile, or uses what PCRE2 would read otherwise.
  Regex(std::string_view pattern, const std::string& where);

  // All matches in valid UTF-8, from left to right, not overlapping; empty ones too.
  [[nodiscard]] std::vector<Match> find_all(std::string_view text) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

// The pattern with \p{L}, \p{N}, \p{M}, \p{P}, \p{S}, \s and their negations written out as ranges.
[[nodiscard]] std::string expand_classes(std::string_view pattern, const std::string& where);

}  // namespace onset
