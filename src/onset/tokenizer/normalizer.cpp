#include "onset/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "onset/tokenizer/nfc.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

std::size_t end_of_spaces(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const DecodedChar next = decode_char(text, at);
    if (char_class(next.code) != CharClass::space) break;
    at += next.length;
  }
  return at;
}

std::string_view strip(std::string_view text, bool left, bool right) {
  if (left) text.remove_prefix(end_of_spaces(text));
  while (right && !text.empty()) {
    const std::size_t last = previous_char(text, text.size());
    if (char_class(decode_char(text, last).code) != CharClass::space) break;
    text = text.substr(0, last);
  }
  return text;
}

void append_replaced(std::string& out, std::string_view text, const NormalizerStep& step) {
  std::size_t copied = 0;
  const auto put = [&](std::size_t start, std::size_t end) {
    out.append(text, copied, start - copied).append(step.text);
    copied = end;
  };
  if (step.regex) {
    for (const auto& match : step.regex->find_all(text)) put(match.start, match.end);
  } else if (!step.pattern.empty()) {
    for (std::size_t at = text.find(step.pattern); at != std::string_view::npos;
         at = text.find(step.pattern, copied)) {
      put(at, at + step.pattern.size());
    }
  }
  out.append(text, copied);
}

// Full lower-casing of a character alone, as Rust's char::to_lowercase.
void append_lowercase(std::string& out, std::string_view text) {
  constexpr char32_t capital_i_with_dot = 0x130;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar next = decode_char(text, at);
    at += next.length;
    if (next.code == capital_i_with_dot) {
      out += "i\u0307";
    } else {
      append_utf8(
          out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(next.code))));
    }
  }
}

void append_without_accents(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar next = decode_char(text, at);
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(next.code));
    if (category != UTF8PROC_CATEGORY_MN) out.append(text, at, next.length);
    at += next.length;
  }
}

// Normalizer::Normalize of SentencePiece, with the characters of its table replaced.
class SentencePieceWriter {
 public:
  SentencePieceWriter(const SentencePieceRule& rule, std::string& out) : rule_(rule), out_(out) {}

  void run(std::string_view text, bool first) {
    const bool prefix = rule_.dummy_prefix == PrefixScheme::always ||
                        (rule_.dummy_prefix == PrefixScheme::first && first);
    skip_spaces_ = rule_.remove_extra_whitespaces;
    prefix_waits_ = prefix;
    if (rule_.charsmap == nullptr) {
      if (!text.empty()) put(text);
    } else {
      for (std::size_t at = 0; at < text.size();) {
        const Charsmap::Match match = rule_.charsmap->find(text.substr(at));
        const std::size_t length = match.length > 0 ? match.length : decode_char(text, at).length;
        put(match.length > 0 ? match.result : text.substr(at, length));
        at += length;
      }
    }
    if (rule_.remove_extra_whitespaces) {
      while (out_.size() > start_ && out_.ends_with(space())) {
        out_.resize(out_.size() - space().size());
      }
    }
  }

 private:
  [[nodiscard]] std::string_view space() const {
    return rule_.escape_whitespaces ? space_symbol : std::string_view(" ");
  }

  // A stretch of the result, before spaces are escaped.
  void put(std::string_view text) {
    while (!text.empty()) {
      const std::size_t at = std::min(text.find(' '), text.size());
      if (at > 0) {
        put_prefix();
        out_.append(text, 0, at);
        skip_spaces_ = false;
      }
      if (at == text.size()) return;
      if (!skip_spaces_) {
        put_prefix();
        out_.append(space());
        skip_spaces_ = rule_.remove_extra_whitespaces;
      }
      text.remove_prefix(at + 1);
    }
  }
  void put_prefix() {
    if (!prefix_waits_) return;
    prefix_waits_ = false;
    out_.append(space());
  }

  const SentencePieceRule& rule_;
  std::string& out_;
  std::size_t start_ = 0;
  bool skip_spaces_ = false;
  bool prefix_waits_ = false;
};

// One step; gives `text`, a part of it, or `out` when that was filled.
std::string_view apply(const NormalizerStep& step, std::string_view text, bool first,
                       std::string& out) {
  using Kind = NormalizerStep::Kind;
  out.clear();
  switch (step.kind) {
    case Kind::nfc:
      return to_nfc(text, out);
    case Kind::nfd:
      return decomposed(text, /*compatibility=*/false, out);
    case Kind::nfkd:
      return decomposed(text, /*compatibility=*/true, out);
    case Kind::nfkc: {
      std::string parts;
      const std::string_view decomposition = decomposed(text, /*compatibility=*/true, parts);
      const std::string_view composed = to_nfc(decomposition, out);
      if (composed.data() != out.data()) out = composed;
      return out;
    }
    case Kind::lowercase:
      append_lowercase(out, text);
      return out;
    case Kind::strip_accents:
      append_without_accents(out, text);
      return out;
    case Kind::strip:
      return strip(text, step.left, step.right);
    case Kind::prepend:
      if (text.empty()) return text;
      out.append(step.text).append(text);
      return out;
    case Kind::append:
      if (text.empty()) return text;
      out.append(text).append(step.text);
      return out;
    case Kind::replace:
      append_replaced(out, text, step);
      return out;
    case Kind::sentencepiece:
      out.reserve(text.size() + text.size() / 2);
      SentencePieceWriter(step.rule, out).run(text, first);
      return out;
  }
  return text;
}

}  // namespace

std::string_view Normalizer::run(std::string_view text, bool first, Scratch& scratch) const {
  for (const auto& step : steps) {
    // What a step reads never lies in the string that it writes.
    text = apply(step, text, first, scratch.other);
    if (text.data() != scratch.other.data()) continue;
    std::swap(scratch.text, scratch.other);
    text = scratch.text;
  }
  return text;
}

}  // namespace onset
