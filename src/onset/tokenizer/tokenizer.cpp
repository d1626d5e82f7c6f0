#include "onset/tokenizer/tokenizer.h"

#include <mutex>
#include <utility>

#include "onset/base/error.h"
#include "onset/checkpoint/gguf.h"
#include "onset/tokenizer/nfc.h"
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
  std::string normalized;
  std::vector<AddedTokenFinder::Match> matches;
  std::vector<AddedTokenFinder::Match> normalized_matches;
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
    std::vector<AddedToken> normalized;
    for (const auto& token : data.added) {
      (token.normalized ? normalized : plain).push_back(token);
    }
    for (auto& token : normalized) {
      std::string storage;
      if (data.nfc) token.content = std::string(to_nfc(token.content, storage));
    }
    added = AddedTokenFinder(std::move(plain));
    added_normalized = AddedTokenFinder(std::move(normalized));
  }

  TokenizerData data;
  AddedTokenFinder added;
  AddedTokenFinder added_normalized;
  mutable ScratchPool pool;

  // Text without added tokens.
  void encode_plain(std::string_view text, EncodeScratch& scratch,
                    std::vector<TokenId>& ids) const {
    const std::string_view pieces = data.pretokenizer.run(text, scratch.pieces);
    std::size_t start = 0;
    for (const std::size_t end : scratch.pieces.ends) {
      data.bpe.encode(pieces.substr(start, end - start), data.vocabulary, scratch.bpe, ids);
      start = end;
    }
  }

  // Text between the tokens that are looked for before normalising.
  void encode_stretch(std::string_view text, bool parse_special, EncodeScratch& scratch,
                      std::vector<TokenId>& ids) const {
    if (data.nfc) text = to_nfc(text, scratch.normalized);
    std::size_t at = 0;
    if (parse_special && !added_normalized.empty()) {
      added_normalized.find(text, scratch.normalized_matches);
      for (const auto& match : scratch.normalized_matches) {
        encode_plain(text.substr(at, match.start - at), scratch, ids);
        ids.push_back(match.id);
        at = match.end;
      }
    }
    encode_plain(text.substr(at), scratch, ids);
  }

  void encode_text(std::string_view text, bool parse_special, EncodeScratch& scratch,
                   std::vector<TokenId>& ids) const {
    std::size_t at = 0;
    if (parse_special && !added.empty()) {
      added.find(text, scratch.matches);
      for (const auto& match : scratch.matches) {
        encode_stretch(text.substr(at, match.start - at), parse_special, scratch, ids);
        ids.push_back(match.id);
        at = match.end;
      }
    }
    encode_stretch(text.substr(at), parse_special, scratch, ids);
  }

  void check(std::int64_t id) const {
    require_input(data.vocabulary.contains(id), "token id ", id,
                  " is not in the vocabulary, which has ", data.vocabulary.size(), " ids");
  }
};

Tokenizer Tokenizer::open(const std::filesystem::path& path) {
  Tokenizer tokenizer;
  const bool gguf = !std::filesystem::is_directory(path) && looks_like_gguf(path);
  tokenizer.impl_ =
      std::make_shared<const Impl>(gguf ? load_tokenizer_gguf(path) : load_tokenizer_json(path));
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
  std::string bytes;
  for (const TokenId id : ids) {
    impl_->check(id);
    if (options.skip_special && impl_->data.vocabulary.is_special(id)) continue;
    bytes += impl_->data.vocabulary.bytes(id);
  }
  return is_valid_utf8(bytes) ? bytes : lossy_utf8(bytes);
}

std::string Tokenizer::piece_bytes(TokenId id) const {
  impl_->check(id);
  return std::string(impl_->data.vocabulary.bytes(id));
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
  return str_cat("BPE (byte level), pre-tokenizer ", data.pretokenizer_name, ", ",
                 with_thousands(data.vocabulary.count() - added), " pieces and ",
                 with_thousands(added), " added");
}

const std::optional<std::string>& Tokenizer::chat_template() const {
  return impl_->data.chat_template;
}

}  // namespace onset
