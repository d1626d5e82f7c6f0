// Encoding a text in which some stretches are quoted: a chat's markers around what people wrote.
#include "onset/base/error.h"
#include "onset/tokenizer/tokenizer_impl.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
std::vector<TextSpan> normalised_spans(const TokenizerData& data, std::string_view text, bool first,
                                       const std::vector<TextSpan>& spans) {
  if (data.normalizer.steps.empty()) return spans;
  Normalizer::Scratch scratch;
  const auto place_of = [&](std::size_t place) {
    return data.normalizer.run(text.substr(0, place), first, scratch).size();
  };
  std::vector<TextSpan> result;
  for (const TextSpan& span : spans) {
    const std::size_t start = span.start == 0 ? 0 : place_of(span.start);
    result.push_back({start, std::max(place_of(span.end), start)});
  }
  return result;
}

std::vector<TokenId> Tokenizer::encode_literal(std::string_view text,
                                               const LiteralText& literal) const {
  require_input(is_valid_utf8(text), "the text is not valid UTF-8");
  std::vector<TokenId> ids;
  auto scratch = impl_->pool.take();
  const auto add_stretch = [&](std::size_t start, std::size_t end) {
    const std::string_view part = text.substr(start, end - start);
    const bool first = start == 0;
    if (impl_->added_normalized.empty()) {
      impl_->encode_stretch(part, first, /*parse_special=*/true, *scratch, ids);
      return;
    }
    const auto spans =
        normalised_spans(impl_->data, part, first, clipped(literal.spans, start, end));
    const LiteralText inside{spans, literal.markers};
    impl_->encode_stretch(part, first, /*parse_special=*/true, *scratch, ids, &inside);
  };
  std::vector<AddedTokenFinder::Match> matches;
  impl_->added.find(text, matches, &literal);
  std::size_t at = 0;
  for (const auto& match : matches) {
    add_stretch(at, match.start);
    ids.push_back(match.id);
    at = match.end;
  }
  add_stretch(at, text.size());
  impl_->pool.give_back(std::move(scratch));
  return ids;
}

}  // namespace onset
