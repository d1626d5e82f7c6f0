// Byte-pair encoding of one piece: the pair of the lowest rank is merged first, the leftmost where
// a pair stands twice, until no pair is known.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "onset/tokenizer/tokenizer.h"
#include "onset/tokenizer/vocabulary.h"

namespace onset {

// What merging two neighbours gives. Ordered by rank, in the high half of the bits; merges of
// SentencePiece share a rank where their scores are the same.
class Merge {
 public:
  Merge() = default;
  Merge(std::uint32_t rank, TokenId result)
      : bits_((std::uint64_t{rank} << 32) | static_cast<std::uint32_t>(result)) {}
  [[nodiscard]] bool exists() const { return bits_ != none; }
  [[nodiscard]] TokenId result() const { return static_cast<TokenId>(bits_ & 0xFFFFFFFFU); }
  [[nodiscard]] std::uint32_t rank() const { return static_cast<std::uint32_t>(bits_ >> 32); }
  [[nodiscard]] bool operator<(const Merge& other) const { return rank() < other.rank(); }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};  // behind every merge
  std::uint64_t bits_ = none;
};

// Pairs of neighbours to merges: open addressing, at most half full.
class MergeTable {
 public:
  struct Rule {
    TokenId left;
    TokenId right;
    TokenId result;
    std::uint32_t rank;
  };

  MergeTable() : MergeTable(std::vector<Rule>{}) {}
  // A later rule for the same pair replaces the earlier one, as in the reference.
  explicit MergeTable(const std::vector<Rule>& rules);
  [[nodiscard]] Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t pair = empty;
    Merge merge;
  };
  static constexpr std::uint64_t empty = ~std::uint64_t{0};  // ids are not negative
  [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const;

  std::vector<Slot> slots_;
  unsigned shift_ = 64;
};

// Ids of pieces that were met before. Direct-mapped: a newer piece takes the place of an older one.
class PieceCache {
 public:
  PieceCache();
  // Appends the ids of the piece; false where it is not there.
  [[nodiscard]] bool find(std::string_view piece, std::uint64_t hash,
                          std::vector<TokenId>& ids) const;
  void put(std::string_view piece, std::uint64_t hash, const TokenId* ids, std::size_t count);
  [[nodiscard]] static bool takes(std::string_view piece) { return piece.size() <= max_bytes; }

 private:
  static constexpr std::size_t max_bytes = 30;
  static constexpr std::size_t max_ids = 8;
  struct alignas(64) Slot {  // one cache line
    std::array<TokenId, max_ids> ids;
    std::uint8_t count = 0;
    std::uint8_t length = 0;
    std::array<char, max_bytes> bytes;
  };
  std::vector<Slot> slots_;
};

// Ids of single characters: pages of 256 code points, only those that hold one.
class CharTable {
 public:
  void set(char32_t code, TokenId id);
  // -1 where the character has none.
  [[nodiscard]] TokenId find(char32_t code) const {
    const std::size_t page = code / page_size;
    if (page >= pages_.size() || pages_[page] < 0) return -1;
    return ids_[static_cast<std::size_t>(pages_[page]) + code % page_size];
  }

 private:
  static constexpr std::size_t page_size = 256;
  std::vector<std::int32_t> pages_;  // where the page begins in ids_, or -1
  std::vector<TokenId> ids_;
};

// What pieces start as before the first merge.
enum class Symbols {
  bytes,
  chars,  // characters; one that has no id falls back to its bytes, or is unknown
};

class Bpe {
 public:
  // What one encode() needs and the next can use again.
  struct Scratch;

  // The ids a byte starts as: one, or none where the vocabulary lacks the byte and no fallback.
  struct Symbol {
    std::array<TokenId, 2> ids{-1, -1};
    std::uint8_t count = 0;
    bool unknown = false;   // becomes the unknown token
    bool fallback = false;  // spelled as "<0x0A>"
  };

  MergeTable merges;
  Symbols start = Symbols::bytes;
  std::array<Symbol, 256> symbols;
  CharTable chars;
  // Ids that merging may leave but no text is given: what stands for each instead. For rare
  // vocabularies of SentencePiece (see sentencepiece.h); sorted by id.
  std::vector<std::pair<TokenId, std::vector<TokenId>>> replacements;
  std::optional<TokenId> unknown;
  bool fuse_unknown = false;
  // A piece that is in the vocabulary becomes its token whatever the merges say.
  bool ignore_merges = false;

  void encode(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
              std::vector<TokenId>& ids) const;

 private:
  void encode_uncached(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                       std::vector<TokenId>& ids) const;
  void append_symbols(std::string_view piece, std::vector<TokenId>& ids) const;
  void append_chars(std::string_view piece, std::vector<TokenId>& ids) const;
  void replace(std::vector<TokenId>& ids, std::size_t from) const;
  // Merges ids[from, end) in place.
  void merge_short(std::vector<TokenId>& ids, std::size_t from) const;
  void merge_long(Scratch& scratch, std::vector<TokenId>& ids, std::size_t from) const;
};

struct Bpe::Scratch {
  struct Node {
    TokenId id;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    Merge merge;
    std::int32_t left;
    TokenId left_id;
    TokenId right_id;
  };

  PieceCache cache;
  std::vector<Node> nodes;
  std::vector<Candidate> heap;
};

}  // namespace onset
