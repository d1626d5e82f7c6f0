// Which tokens hold bytes of given stretches of a text.
#include <algorithm>

#include "onset/base/error.h"
#include "onset/tokenizer/tokenizer_impl.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

using Coverage = CoveredTokens::Coverage;
using Spans = std::vector<TextSpan>;

Coverage coverage_of(TextSpan token, const Spans& spans) {
  std::size_t inside = 0;
  for (const TextSpan& span : spans) {
    const std::size_t from = std::max(span.start, token.start);
    const std::size_t to = std::min(span.end, token.end);
    if (from < to) inside += to - from;
    // A token that holds no byte belongs where it stands.
    if (token.start == token.end && span.start <= token.start && token.start < span.end) {
      return Coverage::all;
    }
  }
  if (inside == 0) return Coverage::none;
  return inside == token.end - token.start ? Coverage::all : Coverage::part;
}

// Finds tokens one behind the other in the text that they were made of.
class Aligner {
 public:
  explicit Aligner(std::string_view text) : text_(text) {}

  TextSpan next(std::string_view bytes) {
    const std::string_view rest = text_.substr(at_);
    std::size_t skipped = 0;
    if (!rest.starts_with(bytes)) {
      // A space that the tokenizer put there, or bytes before it that the vocabulary lacks.
      if (bytes.starts_with(' ') && rest.starts_with(bytes.substr(1))) {
        bytes.remove_prefix(1);
      } else {
        constexpr std::size_t farthest = 256;
        skipped = rest.substr(0, farthest).find(bytes);
        if (skipped == std::string_view::npos) return {at_, at_};
      }
    }
    const std::size_t start = at_ + skipped;
    at_ = start + bytes.size();
    return {start, at_};
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// A stretch between special tokens as it is cut into tokens, and where places of it went.
class Stretch {
 public:
  Stretch(const TokenizerData& data, std::string_view text, bool first)
      : data_(data), text_(text), first_(first), written_(write(text)) {}

  [[nodiscard]] std::string_view written() const { return written_; }
  [[nodiscard]] Spans written(const Spans& spans) const {
    Spans result;
    for (const TextSpan& span : spans) {
      const std::size_t start = place_of(span.start);
      result.push_back({start, std::max(place_of(span.end), start)});
    }
    return result;
  }

 private:
  [[nodiscard]] std::string write(std::string_view text) const {
    Normalizer::Scratch scratch;
    const std::string_view normalized = data_.normalizer.run(text, first_, scratch);
    if (data_.decoder.kind == Decoder::Kind::byte_level) return std::string(normalized);
    std::string out;
    append_with_spaces(out, normalized);
    return out;
  }
  [[nodiscard]] std::size_t place_of(std::size_t place) const {
    if (place == 0) return 0;
    if (place == text_.size()) return written_.size();
    if (data_.normalizer.steps.empty()) return place;
    return std::min(write(text_.substr(0, place)).size(), written_.size());
  }

  const TokenizerData& data_;
  std::string_view text_;
  bool first_;
  std::string written_;
};

// A special token may take the white space around it along, of which it holds nothing.
TextSpan without_white_space(std::string_view text, const AddedTokenFinder::Match& match,
                             const std::string& content) {
  const std::size_t at = text.substr(0, match.end).find(content, match.start);
  if (at == std::string_view::npos) return {match.start, match.end};
  return {at, at + content.size()};
}

}  // namespace

CoveredTokens Tokenizer::encode_with_coverage(std::string_view text,
                                              std::span<const TextSpan> spans,
                                              const EncodeOptions& options,
                                              const LiteralText& literal) const {
  require_input(is_valid_utf8(text), "the text is not valid UTF-8");
  const TokenizerData& data = impl_->data;
  CoveredTokens result;
  if (options.add_special) result.ids = data.prefix;
  result.coverage.assign(result.ids.size(), Coverage::none);
  auto scratch = impl_->pool.take();
  const auto add_stretch = [&](std::size_t start, std::size_t end) {
    const std::string_view part = text.substr(start, end - start);
    const bool first = start == 0;
    const std::size_t from = result.ids.size();
    const bool looks_inside = !literal.spans.empty() && !impl_->added_normalized.empty();
    const Spans quoted =
        looks_inside ? normalised_spans(data, part, first, clipped(literal.spans, start, end))
                     : Spans{};
    const LiteralText within{quoted, literal.markers};
    impl_->encode_stretch(part, first, options.parse_special, *scratch, result.ids, &within);
    const Stretch stretch(data, part, first);
    const Spans inside = stretch.written(clipped(spans, start, end));
    Aligner aligner(stretch.written());
    for (std::size_t i = from; i < result.ids.size(); ++i) {
      const std::string bytes = data.decoder.piece_bytes(result.ids[i], data.vocabulary);
      result.coverage.push_back(coverage_of(aligner.next(bytes), inside));
    }
  };
  std::vector<AddedTokenFinder::Match> matches;
  (options.parse_special ? impl_->added : impl_->added_always).find(text, matches, &literal);
  std::size_t at = 0;
  for (const auto& match : matches) {
    add_stretch(at, match.start);
    result.ids.push_back(match.id);
    const TextSpan own = without_white_space(text, match, data.vocabulary.spelled(match.id));
    result.coverage.push_back(coverage_of(own, clipped(spans, 0, text.size())));
    at = match.end;
  }
  add_stretch(at, text.size());
  impl_->pool.give_back(std::move(scratch));
  if (options.add_special) {
    result.ids.insert(result.ids.end(), data.suffix.begin(), data.suffix.end());
  }
  result.coverage.resize(result.ids.size(), Coverage::none);
  return result;
}

}  // namespace onset
