// Regexes on answers, read as Python's `re` reads them. Torch-free.
//
// Tasks of the field write their filters for Python. PCRE2 reads those patterns alike but for \Z,
// which there allows a newline behind it, so it is not accepted: write \z. A search that a pattern
// makes too long (model output is hostile) ends as if nothing had matched.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

class TextPattern {
 public:
  struct Match {
    std::string_view text;                 // the whole match
    std::vector<std::string_view> groups;  // one a capture group; empty where it took no part
  };

  // Throws an input error "WHERE: ..." when the pattern does not compile.
  TextPattern(std::string_view pattern, const std::string& where);

  // re.finditer: all matches from left to right, empty ones too. The views point into `text`, which
  // is valid UTF-8 (make it so with lossy_utf8).
  [[nodiscard]] std::vector<Match> find_all(std::string_view text) const;
  // re.sub(pattern, "", text).
  [[nodiscard]] std::string remove_from(std::string_view text) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

}  // namespace onset
