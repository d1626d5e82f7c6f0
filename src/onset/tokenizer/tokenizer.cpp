#include "onset/tokenizer/tokenizer.h"

#include <mutex>
#include <utility>

#include "onset/base/error.h"
#include "onset/tokenizer/tokenizer_data.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

std::string with_thousands(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

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

}  // namespace

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
      token.content = std::string(data.normalizer.run(token.content, /*first=*/true, scratch));
    }
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

  // Text between the tokens that are looked for before normalising.
  void encode_stretch(std::string_view text, bool first, bool parse_special, EncodeScratch& scratch,
                      std::vector<TokenId>& ids) const {
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
      added_normalized.find(text, scratch.normalized_matches);
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

Tokenizer Tokenizer::open(const std::filesystem::path& path) {
  Tokenizer tokenizer;
  tokenizer.impl_ = std::make_shared<const Impl>(load_tokenizer(path));
  return tokenizer;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = lossy_utf8(text);
    text = repaired;
  }
  const auto& data = impl_->data;
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 8);
  if (options.add_special) ids = data.prefix;
  auto scratch = impl_->pool.take();
  impl_->encode_text(text, options.parse_special, *scratch, ids);
  impl_->pool.give_back(std::move(scratch));
  if (options.add_special) ids.insert(ids.end(), data.suffix.begin(), data.suffix.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  const auto& data = impl_->data;
  std::vector<TokenId> kept;
  for (const TokenId id : ids) {
    impl_->check(id);
    if (options.skip_special && !data.vocabulary.is_special(id)) kept.push_back(id);
  }
  return data.decoder.decode(options.skip_special ? kept : ids, data.vocabulary);
}

std::string Tokenizer::piece_bytes(TokenId id) const {
  impl_->check(id);
  return impl_->data.decoder.piece_bytes(id, impl_->data.vocabulary);
}

std::string Tokenizer::piece(TokenId id) const {
  impl_->check(id);
  return impl_->data.vocabulary.spelled(id);
}

std::optional<TokenId> Tokenizer::find(std::string_view piece) const {
  if (!is_valid_utf8(piece)) return std::nullopt;
  return impl_->data.vocabulary.find(piece);
}

std::int64_t Tokenizer::vocabulary_size() const { return impl_->data.vocabulary.size(); }

bool Tokenizer::is_special(TokenId id) const {
  return impl_->data.vocabulary.contains(id) && impl_->data.vocabulary.is_special(id);
}

const SpecialPolicy& Tokenizer::special() const { return impl_->data.special; }

std::string Tokenizer::description() const {
  const auto& data = impl_->data;
  const auto added = static_cast<std::int64_t>(data.added.size());
  const std::string pre =
      data.pretokenizer_name.empty() ? "" : ", pre-tokenizer " + data.pretokenizer_name;
  return str_cat(data.model_name, pre, ", ", with_thousands(data.vocabulary.count() - added),
                 " pieces and ", with_thousands(added), " added");
}

const std::optional<std::string>& Tokenizer::chat_template() const {
  return impl_->data.chat_template;
}

}  // namespace onset
