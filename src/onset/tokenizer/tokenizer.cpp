#include "onset/tokenizer/tokenizer.h"

#include <utility>

#include "onset/base/error.h"
#include "onset/tokenizer/tokenizer_impl.h"
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

}  // namespace

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

bool Tokenizer::contains(std::int64_t id) const { return impl_->data.vocabulary.contains(id); }

bool Tokenizer::is_byte(TokenId id) const {
  impl_->check(id);
  return impl_->data.decoder.is_byte(id, impl_->data.vocabulary);
}

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
