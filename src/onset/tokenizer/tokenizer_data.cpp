#include "onset/tokenizer/tokenizer_data.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/byte_level.h"
#include "onset/tokenizer/unicode.h"

namespace onset {

std::string byte_piece(unsigned byte) {
  std::array<char, 8> name{};
  std::snprintf(name.data(), name.size(), "<0x%02X>", byte & 0xFFU);
  return name.data();
}

std::optional<unsigned> byte_of_piece(std::string_view spelled) {
  if (spelled.size() != 6 || !spelled.starts_with("<0x") || spelled.back() != '>') {
    return std::nullopt;
  }
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(spelled.data() + 3, spelled.data() + 5, byte, 16);
  if (error != std::errc() || end != spelled.data() + 5) return std::nullopt;
  return byte;
}

namespace {

// The piece "<0x0A>" for every byte of the spelling, or nothing where the vocabulary lacks one.
Bpe::Symbol fallback_symbol(const Vocabulary& vocabulary, std::string_view spelled) {
  Bpe::Symbol symbol;
  for (const char byte : spelled) {
    const auto id = vocabulary.find(byte_piece(static_cast<unsigned char>(byte)));
    if (!id) return {};
    symbol.ids[symbol.count++] = *id;
  }
  symbol.fallback = true;
  return symbol;
}

}  // namespace

void add_token(TokenizerData& data, const AddedToken& token, const std::string& where) {
  if (token.content.empty()) return;
  const auto known = data.vocabulary.find(token.content);
  if (known && *known != token.id) {
    throw input_error(str_cat(where, ": added token ", quote(token.content), " has id ", token.id,
                              ", in the vocabulary it has ", *known));
  }
  if (!data.vocabulary.add(token.content, token.id)) {
    throw input_error(str_cat(where, ": added token ", quote(token.content), " has id ", token.id,
                              ", which is another token's"));
  }
  if (data.vocabulary.is_added(token.id)) return;
  data.vocabulary.mark_added(token.id, token.special);
  data.added.push_back(token);
}

void set_char_symbols(TokenizerData& data, bool byte_fallback) {
  data.bpe.start = Symbols::chars;
  for (TokenId id = 0; id < data.vocabulary.size(); ++id) {
    if (!data.vocabulary.contains(id)) continue;
    const std::string_view text = data.vocabulary.bytes(id);
    if (text.empty()) continue;
    const DecodedChar first = decode_char(text, 0);
    if (first.length == text.size()) data.bpe.chars.set(first.code, id);
  }
  if (!byte_fallback) return;
  for (unsigned byte = 0; byte < data.bpe.symbols.size(); ++byte) {
    const auto id = data.vocabulary.find(byte_piece(byte));
    if (id) data.bpe.symbols[byte] = {{*id, -1}, 1, /*unknown=*/false, /*fallback=*/true};
  }
}

void set_byte_symbols(TokenizerData& data, bool byte_fallback) {
  for (unsigned byte = 0; byte < data.bpe.symbols.size(); ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    Bpe::Symbol& symbol = data.bpe.symbols[byte];
    symbol = {};
    if (const auto id = data.vocabulary.find_bytes(bytes)) {
      symbol.ids[0] = *id;
      symbol.count = 1;
      continue;
    }
    if (byte_fallback) symbol = fallback_symbol(data.vocabulary, spelling_of(bytes));
    symbol.unknown = symbol.count == 0 && data.bpe.unknown.has_value();
  }
}

TokenId MergeReader::id_of(std::string_view spelled) {
  bytes_.clear();
  const bool of_alphabet = vocabulary_.append_bytes(spelled, bytes_);
  // Most vocabularies are in the order of their merges.
  const TokenId next = rules_.empty() ? 0 : rules_.back().result + 1;
  if (of_alphabet && vocabulary_.contains(next) && vocabulary_.spells(next, bytes_)) return next;
  const auto id = of_alphabet ? vocabulary_.find_bytes(bytes_) : vocabulary_.find(spelled);
  if (!id) {
    throw input_error(str_cat(where_, ": merge ", rules_.size(), ": ", quote(spelled),
                              " is not in the vocabulary"));
  }
  return *id;
}

void MergeReader::add(std::string_view left, std::string_view right) {
  joined_.assign(left);
  joined_.append(right);
  const TokenId left_id = id_of(left);
  const TokenId right_id = id_of(right);
  const TokenId result = id_of(joined_);
  rules_.push_back({left_id, right_id, result, static_cast<std::uint32_t>(rules_.size())});
}

}  // namespace onset
