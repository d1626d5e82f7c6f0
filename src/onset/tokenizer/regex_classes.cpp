// PCRE2's Unicode tables and its \s differ from those of the reference tokenizers: patterns get
// their classes written out as ranges before they are compiled.
#include <array>
#include <cstdio>

#include "onset/base/error.h"
#include "onset/tokenizer/regex.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

std::string as_ranges(const std::vector<CodeRange>& ranges) {
  std::string text;
  for (const auto& range : ranges) {
    std::array<char, 40> part{};
    std::snprintf(part.data(), part.size(), "\\x{%X}-\\x{%X}", static_cast<unsigned>(range.low),
                  static_cast<unsigned>(range.high));
    text += part.data();
  }
  return text;
}

std::string ranges_of(CharClass wanted, bool negated) {
  const auto ranges = class_ranges(wanted);
  if (!negated) return as_ranges(ranges);
  std::vector<CodeRange> others;
  char32_t next = 0;
  for (const auto& range : ranges) {
    if (range.low > next) others.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  others.push_back({next, 0x10FFFF});
  return as_ranges(others);
}

class Expander {
 public:
  Expander(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\') {
        escape();
      } else {
        plain();
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw input_error(str_cat(where_, ": the regex uses ", what, ", which onset does not know"));
  }

  void plain() {
    const char next = pattern_[at_];
    const std::string_view rest = pattern_.substr(at_);
    if (in_class_) {
      if (next == '[') refuse("a class inside a class");
      if (rest.substr(0, 2) == "&&") refuse("an intersection of classes");
      if (next == ']' && at_ != class_start_) in_class_ = false;
    } else if (next == '[') {
      in_class_ = true;
      class_start_ = at_ + (rest.substr(0, 2) == "[^" ? 2 : 1);
      out_.append(rest.substr(0, class_start_ - at_));
      at_ = class_start_;
      return;
    }
    out_ += next;
    ++at_;
  }

  void escape() {
    if (at_ + 1 >= pattern_.size()) refuse("a backslash at its end");
    const char kind = pattern_[at_ + 1];
    if (kind == 's' || kind == 'S') {
      put_class(CharClass::space, kind == 'S');
      at_ += 2;
    } else if (kind == 'p' || kind == 'P') {
      property(kind == 'P');
    } else if (kind == 'h' || kind == 'H') {
      refuse("\\h");  // hexadecimal digits in Oniguruma, blanks in PCRE2
    } else {
      out_.append(pattern_.substr(at_, 2));
      at_ += 2;
    }
  }

  void property(bool negated) {
    const std::size_t close = pattern_.find('}', at_);
    if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || close == std::string_view::npos) {
      refuse("\\p without a name in braces");
    }
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    if (!name.empty() && name.front() == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    constexpr std::string_view known = "LNMPS";
    constexpr std::array<CharClass, 5> classes = {CharClass::letter, CharClass::number,
                                                  CharClass::mark, CharClass::punctuation,
                                                  CharClass::symbol};
    const std::size_t row = name.size() == 1 ? known.find(name[0]) : std::string_view::npos;
    if (row != std::string_view::npos) {
      put_class(classes[row], negated);
    } else {
      // Finer categories and scripts are PCRE2's.
      out_ += str_cat(negated ? "\\P{" : "\\p{", name, "}");
    }
    at_ = close + 1;
  }

  void put_class(CharClass wanted, bool negated) {
    const std::string ranges = ranges_of(wanted, negated);
    out_ += in_class_ ? ranges : "[" + ranges + "]";
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  std::size_t class_start_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string expand_classes(std::string_view pattern, const std::string& where) {
  return Expander(pattern, where).run();
}

}  // namespace onset
