#include "onset/tokenizer/added_tokens.h"

#include <algorithm>

#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

bool is_whole_word(std::string_view text, std::size_t start, std::size_t end) {
  const bool joined_left = start > 0 && is_word(decode_char(text, previous_char(text, start)).code);
  const bool joined_right = end < text.size() && is_word(decode_char(text, end).code);
  return !joined_left && !joined_right;
}

std::size_t skip_spaces_left(std::string_view text, std::size_t at) {
  while (at > 0) {
    const std::size_t before = previous_char(text, at);
    if (char_class(decode_char(text, before).code) != CharClass::space) break;
    at = before;
  }
  return at;
}

std::size_t skip_spaces_right(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const DecodedChar next = decode_char(text, at);
    if (char_class(next.code) != CharClass::space) break;
    at += next.length;
  }
  return at;
}

bool overlaps(std::span<const TextSpan> spans, std::size_t start, std::size_t end) {
  const auto next = std::partition_point(spans.begin(), spans.end(),
                                         [&](const TextSpan& span) { return span.end <= start; });
  return next != spans.end() && next->start < end;
}

bool is_text(const AddedToken& token, std::size_t start, std::size_t end,
             const LiteralText& literal) {
  const auto& markers = literal.markers;
  return overlaps(literal.spans, start, end) &&
         (token.special ||
          std::find(markers.begin(), markers.end(), token.content) != markers.end());
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (const auto& token : tokens_)
    first_byte_[static_cast<unsigned char>(token.content[0])] = true;
  if (std::count(first_byte_.begin(), first_byte_.end(), true) == 1) {
    single_first_byte_ = static_cast<unsigned char>(tokens_[0].content[0]);
  }
}

std::size_t AddedTokenFinder::next_candidate(std::string_view text, std::size_t at) const {
  if (single_first_byte_ >= 0) {
    return std::min(text.find(static_cast<char>(single_first_byte_), at), text.size());
  }
  while (at < text.size() && !first_byte_[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

AddedTokenFinder::Hit AddedTokenFinder::longest_at(std::string_view text, std::size_t at) const {
  Hit hit{at, -1};
  auto low = tokens_.begin();
  auto high = tokens_.end();
  // Narrows to the tokens that begin with text[at, at + depth); the shortest of them is the first.
  for (std::size_t depth = 0; low != high; ++depth) {
    if (low->content.size() == depth) {
      hit = {at + depth, static_cast<std::int32_t>(low - tokens_.begin())};
      if (++low == high) break;
    }
    if (at + depth >= text.size()) break;
    const auto byte = static_cast<unsigned char>(text[at + depth]);
    const auto at_depth = [&](const AddedToken& token) {
      return static_cast<unsigned char>(token.content[depth]);
    };
    low =
        std::partition_point(low, high, [&](const auto& token) { return at_depth(token) < byte; });
    high =
        std::partition_point(low, high, [&](const auto& token) { return at_depth(token) == byte; });
  }
  return hit;
}

void AddedTokenFinder::find(std::string_view text, std::vector<Match>& matches,
                            const LiteralText* literal) const {
  matches.clear();
  if (tokens_.empty()) return;
  std::size_t taken = 0;  // end of the match before, white space included
  for (std::size_t at = next_candidate(text, 0); at < text.size();) {
    const Hit hit = longest_at(text, at);
    if (hit.token < 0) {
      at = next_candidate(text, at + 1);
      continue;
    }
    const AddedToken& token = tokens_[hit.token];
    if (literal != nullptr && is_text(token, at, hit.end, *literal)) {
      at = next_candidate(text, at + 1);
      continue;
    }
    const bool found = !token.single_word || is_whole_word(text, at, hit.end);
    if (found) {
      Match match{at, hit.end, token.id};
      if (token.lstrip) match.start = skip_spaces_left(text, at);
      match.start = std::max(match.start, taken);
      if (token.rstrip) match.end = skip_spaces_right(text, hit.end);
      match.end = std::max(match.end, match.start);
      taken = match.end;
      matches.push_back(match);
    }
    at = next_candidate(text, hit.end);
  }
}

}  // namespace onset
