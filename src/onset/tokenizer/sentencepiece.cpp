#include "onset/tokenizer/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/joins.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// Bounds the work on the splits of a piece, which grows with the square of its length.
constexpr std::size_t max_piece_bytes = 1024;
// Bounds the work on unused pieces: the sum of the third powers of their lengths.
constexpr double max_unused_steps = 1e9;

// What merging may make. Control and byte pieces never come from text, and those that the user
// defined are cut out before.
bool is_mergeable(PieceType type) { return type == PieceType::normal || type == PieceType::unused; }

class RuleMaker {
 public:
  RuleMaker(TokenizerData& data, const std::vector<ScoredPiece>& pieces, bool byte_fallback,
            const std::string& where)
      : data_(data), pieces_(pieces), byte_fallback_(byte_fallback), where_(where) {}

  void run() {
    rank_scores();
    set_chars();
    std::vector<MergeTable::Rule> rules;
    rules.reserve(pieces_.size() * 2);
    for (TokenId id = 0; id < size(); ++id) {
      if (is_mergeable(pieces_[id].type)) append_rules(id, rules);
    }
    data_.bpe.merges = MergeTable(rules);
    set_replacements();
  }

 private:
  [[nodiscard]] TokenId size() const { return static_cast<TokenId>(pieces_.size()); }

  // Equal scores have equal ranks.
  void rank_scores() {
    for (const auto& piece : pieces_) {
      if (is_mergeable(piece.type)) scores_.push_back(piece.score);
    }
    std::sort(scores_.begin(), scores_.end(), std::greater<>());
    scores_.erase(std::unique(scores_.begin(), scores_.end()), scores_.end());
  }
  [[nodiscard]] std::uint32_t rank_of(float score) const {
    return static_cast<std::uint32_t>(
        std::lower_bound(scores_.begin(), scores_.end(), score, std::greater<>()) -
        scores_.begin());
  }

  // Characters that are pieces, and those that are only parts of pieces: they may still be merged,
  // so they get ids behind the vocabulary.
  void set_chars() {
    CharTable& chars = data_.bpe.chars;
    for (TokenId id = 0; id < size(); ++id) {
      const std::string_view text = pieces_[id].text;
      if (!is_mergeable(pieces_[id].type) || text.empty()) continue;
      const DecodedChar first = decode_char(text, 0);
      if (first.length == text.size()) chars.set(first.code, id);
    }
    TokenId next = size();
    for (const auto& piece : pieces_) {
      if (!is_mergeable(piece.type)) continue;
      for (std::size_t at = 0; at < piece.text.size();) {
        const DecodedChar part = decode_char(piece.text, at);
        if (chars.find(part.code) < 0) {
          chars.set(part.code, next);
          virtual_.emplace_back(next++, of_bytes(piece.text.substr(at, part.length)));
        }
        at += part.length;
      }
    }
  }

  // What stands for a character that no piece holds whole.
  [[nodiscard]] std::vector<TokenId> of_bytes(std::string_view bytes) const {
    std::vector<TokenId> ids;
    for (const char byte : bytes) {
      const auto& symbol = data_.bpe.symbols[static_cast<unsigned char>(byte)];
      if (symbol.fallback) ids.push_back(symbol.ids[0]);
    }
    if (byte_fallback_ && ids.size() == bytes.size()) return ids;
    if (data_.bpe.unknown) return {*data_.bpe.unknown};
    return {};
  }

  // The symbol with this text, or -1.
  [[nodiscard]] TokenId symbol_of(std::string_view text) const {
    const auto id = data_.vocabulary.find_bytes(text);
    if (id && is_mergeable(pieces_[*id].type)) return *id;
    const DecodedChar first = decode_char(text, 0);
    return first.length == text.size() ? data_.bpe.chars.find(first.code) : -1;
  }

  void append_rules(TokenId id, std::vector<MergeTable::Rule>& rules) const {
    const std::string_view text = pieces_[id].text;
    if (data_.vocabulary.find_bytes(text) != id) return;  // a later piece has the same text
    const std::uint32_t rank = rank_of(pieces_[id].score);
    for (std::size_t at = 0; at < text.size();) {
      at += decode_char(text, at).length;
      if (at >= text.size()) break;
      const TokenId left = symbol_of(text.substr(0, at));
      if (left < 0) continue;
      const TokenId right = symbol_of(text.substr(at));
      if (right >= 0) rules.push_back({left, right, id, rank});
    }
  }

  [[nodiscard]] bool is_unused(TokenId id) const {
    return id < size() && pieces_[id].type == PieceType::unused;
  }

  // The symbols that stand before the last merge which makes a piece.
  [[nodiscard]] std::vector<TokenId> before_last_merge(TokenId id) const {
    const std::string_view text = pieces_[id].text;
    std::vector<TokenId> symbols;
    for (std::size_t at = 0; at < text.size();) {
      const DecodedChar next = decode_char(text, at);
      symbols.push_back(data_.bpe.chars.find(next.code));
      at += next.length;
    }
    while (symbols.size() > 2) {
      Merge best;
      std::size_t place = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const Merge merge = data_.bpe.merges.find(symbols[i], symbols[i + 1]);
        if (!merge.exists() || !(merge < best)) continue;
        best = merge;
        place = i;
      }
      if (!best.exists()) break;
      symbols[place] = best.result();
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    return symbols;
  }

  // An unused piece may be merged further, but in the end it is taken apart into what it was made
  // of, and that too where it is unused.
  [[nodiscard]] std::vector<TokenId> parts_of(TokenId id) const {
    std::vector<TokenId> parts;
    std::vector<TokenId> open = {id};
    while (!open.empty()) {
      const TokenId next = open.back();
      open.pop_back();
      const auto made_of = is_unused(next) ? before_last_merge(next) : std::vector<TokenId>{};
      if (made_of.size() == 2) {
        open.push_back(made_of[1]);
        open.push_back(made_of[0]);
      } else if (next < size()) {
        parts.push_back(next);
      } else {
        const auto& bytes = virtual_[next - size()].second;
        parts.insert(parts.end(), bytes.begin(), bytes.end());
      }
    }
    return parts;
  }

  void set_replacements() {
    double steps = 0;
    for (const auto& piece : pieces_) {
      const auto length = static_cast<double>(piece.text.size());
      if (piece.type == PieceType::unused) steps += length * length * length;
    }
    require_input(steps <= max_unused_steps, where_,
                  ": has too many, or too long, pieces of type unused");
    for (TokenId id = 0; id < size(); ++id) {
      if (!is_unused(id)) continue;
      auto parts = parts_of(id);
      if (parts.size() > 1) data_.bpe.replacements.emplace_back(id, std::move(parts));
    }
    data_.bpe.replacements.insert(data_.bpe.replacements.end(), virtual_.begin(), virtual_.end());
  }

  TokenizerData& data_;
  const std::vector<ScoredPiece>& pieces_;
  bool byte_fallback_;
  const std::string& where_;
  std::vector<float> scores_;
  // Characters without a piece, by the ids behind the vocabulary that they merge as.
  std::vector<std::pair<TokenId, std::vector<TokenId>>> virtual_;
};

void check(const std::vector<ScoredPiece>& pieces, const std::string& where) {
  require_input(!pieces.empty(), where, ": has no pieces");
  require_input(pieces.size() <= static_cast<std::size_t>(max_token_id), where, ": has ",
                pieces.size(), " pieces");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ScoredPiece& piece = pieces[i];
    require_input(is_valid_utf8(piece.text), where, ": piece ", i, " is not valid UTF-8");
    require_input(piece.text.size() <= max_piece_bytes, where, ": piece ", i, " has ",
                  piece.text.size(), " bytes; known are pieces of up to ", max_piece_bytes);
    require_input(!std::isnan(piece.score), where, ": the score of piece ", i, ", ",
                  quote(piece.text), ", is not a number");
    require_input(piece.type >= PieceType::normal && piece.type <= PieceType::byte, where,
                  ": piece ", i, " has the unknown type ", static_cast<std::int64_t>(piece.type));
  }
}

}  // namespace

void set_scored_pieces(TokenizerData& data, const std::vector<ScoredPiece>& pieces,
                       bool byte_fallback, const std::string& where) {
  check(pieces, where);
  data.model_name = "BPE (SentencePiece)";
  data.vocabulary = Vocabulary(Spelling::plain);
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.text.size();
  data.vocabulary.reserve(pieces.size(), bytes);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    static_cast<void>(data.vocabulary.add(pieces[i].text, static_cast<TokenId>(i)));  // distinct
  }
  data.vocabulary.index();
  data.bpe.start = Symbols::chars;
  data.bpe.fuse_unknown = true;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (pieces[i].type == PieceType::unknown && !data.bpe.unknown) data.bpe.unknown = id;
    const auto byte = byte_of_piece(pieces[i].text);
    if (byte_fallback && byte && pieces[i].type == PieceType::byte) {
      data.bpe.symbols[*byte] = {{id, -1}, 1, /*unknown=*/false, /*fallback=*/true};
    }
  }
  RuleMaker(data, pieces, byte_fallback, where).run();
  auto joins = std::make_shared<JoinTable>();
  for (const auto& piece : pieces) {
    if (is_mergeable(piece.type)) joins->add(piece.text);
  }
  joins->add_unknown(data.bpe.chars, data.vocabulary.size());
  data.pretokenizer.steps.emplace_back().joins = std::move(joins);
}

}  // namespace onset
