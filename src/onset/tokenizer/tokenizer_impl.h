// What a Tokenizer holds, and how a text goes through it.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "onset/base/error.h"
#include "onset/tokenizer/tokenizer_data.h"

namespace onset {

// `spans` as they lie in text[start, end), counted from `start`.
[[nodiscard]] inline std::vector<TextSpan> clipped(std::span<const TextSpan> spans,
                                                   std::size_t start, std::size_t end) {
  std::vector<TextSpan> result;
  for (const TextSpan& span : spans) {
    const std::size_t from = std::max(span.start, start);
    const std::size_t to = std::min(span.end, end);
    if (from < to) result.push_back({from - start, to - start});
  }
  return result;
}

// Where the spans of a stretch lie in its normalised text. `first`: as of encode_stretch().
[[nodiscard]] std::vector<TextSpan> normalised_spans(const TokenizerData& data,
                                                     std::string_view text, bool first,
                                                     const std::vector<TextSpan>& spans);

// What one encode() needs. Kept between calls for its memory and its cache of pieces.
struct EncodeScratch {
  Bpe::Scratch bpe;
  Pretokenizer::Scratch pieces;
  Normalizer::Scratch normalized;
  std::vector<AddedTokenFinder::Match> matches;
  std::vector<AddedTokenFinder::Match> normalized_matches;
  std::vector<AddedTokenFinder::Match> frozen_matches;
};

// Hands every call its own scratch, so that threads may share a tokenizer.
class ScratchPool {
 public:
  [[nodiscard]] std::unique_ptr<EncodeScratch> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<EncodeScratch>();
  }
  void give_back(std::unique_ptr<EncodeScratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeScratch>> free_;
};

struct Tokenizer::Impl {
  explicit Impl(TokenizerData loaded) : data(std::move(loaded)) {
    std::vector<AddedToken> plain;
    std::vector<AddedToken> always;
    std::vector<AddedToken> normalized;
    for (const auto& token : data.added) {
      (token.normalized ? normalized : plain).push_back(token);
      if (token.always) always.push_back(token);
    }
    Normalizer::Scratch scratch;
    for (auto& token : normalized) {
      const std::string_view found = data.normalizer.run(token.content, /*first=*/true, scratch);
      if (found != token.content) data.decoder.rewritten.emplace_back(token.id, found);
      token.content = std::string(found);
    }
    std::sort(data.decoder.rewritten.begin(), data.decoder.rewritten.end());
    std::erase_if(normalized, [](const AddedToken& token) { return token.content.empty(); });
    added = AddedTokenFinder(std::move(plain));
    added_always = AddedTokenFinder(std::move(always));
    added_normalized = AddedTokenFinder(std::move(normalized));
    frozen = AddedTokenFinder(data.frozen);
  }

  TokenizerData data;
  AddedTokenFinder added;
  AddedTokenFinder added_always;  // those that are found whatever the options say
  AddedTokenFinder added_normalized;
  AddedTokenFinder frozen;
  mutable ScratchPool pool;

  // Calls `between` for every stretch of the text without the tokens that were found, and whether
  // it begins where the text does; appends the tokens.
  template <typename Between>
  static void around(std::string_view text, const std::vector<AddedTokenFinder::Match>& matches,
                     std::vector<TokenId>& ids, Between&& between) {
    std::size_t at = 0;
    for (const auto& match : matches) {
      between(text.substr(at, match.start - at), at == 0);
      ids.push_back(match.id);
      at = match.end;
    }
    between(text.substr(at), at == 0);
  }

  // Text without added tokens. `first`: it begins where the whole text does.
  void encode_plain(std::string_view text, bool first, EncodeScratch& scratch,
                    std::vector<TokenId>& ids) const {
    const std::string_view pieces = data.pretokenizer.run(text, scratch.pieces, first);
    std::size_t start = 0;
    for (const std::size_t end : scratch.pieces.ends) {
      data.bpe.encode(pieces.substr(start, end - start), data.vocabulary, scratch.bpe, ids);
      start = end;
    }
  }

  // Text between the tokens that are looked for before normalising. `literal`: in places of the
  // normalised text.
  void encode_stretch(std::string_view text, bool first, bool parse_special, EncodeScratch& scratch,
                      std::vector<TokenId>& ids, const LiteralText* literal = nullptr) const {
    text = data.normalizer.run(text, first, scratch.normalized);
    const auto plain = [&](std::string_view part, bool starts) {
      if (frozen.empty()) {
        encode_plain(part, first && starts, scratch, ids);
        return;
      }
      frozen.find(part, scratch.frozen_matches);
      around(part, scratch.frozen_matches, ids, [&](std::string_view rest, bool) {
        encode_plain(rest, /*first=*/false, scratch, ids);
      });
    };
    if (parse_special && !added_normalized.empty()) {
      added_normalized.find(text, scratch.normalized_matches, literal);
      around(text, scratch.normalized_matches, ids, plain);
    } else {
      plain(text, true);
    }
  }

  void encode_text(std::string_view text, bool parse_special, EncodeScratch& scratch,
                   std::vector<TokenId>& ids) const {
    const AddedTokenFinder& finder = parse_special ? added : added_always;
    finder.find(text, scratch.matches);
    around(text, scratch.matches, ids, [&](std::string_view part, bool first) {
      encode_stretch(part, first, parse_special, scratch, ids);
    });
  }

  void check(std::int64_t id) const {
    require_input(data.vocabulary.contains(id), "token id ", id,
                  " is not in the vocabulary, which has ", data.vocabulary.size(), " ids");
  }
};

}  // namespace onset
