// The pieces of a vocabulary by id and by content, in one arena.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/tokenizer/tokenizer.h"

namespace onset {

// Bounds what a file can make us allocate: ids index flat arrays.
constexpr std::int64_t max_token_id = (std::int64_t{1} << 24) - 1;

// How pieces are written.
enum class Spelling {
  byte_level,  // in the alphabet of bytes (see byte_level.h): "Ġcolor"
  plain,       // as text: "▁color"
};

class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(Spelling spelling) : spelling_(spelling) {}

  [[nodiscard]] Spelling spelling() const { return spelling_; }
  void reserve(std::size_t pieces, std::size_t bytes);
  // `spelled` is valid UTF-8. False when the id is taken by another piece; a piece given twice
  // belongs to the later id. Found only after index(), which is called once.
  [[nodiscard]] bool add(std::string_view spelled, TokenId id);
  void index();
  void mark_added(TokenId id, bool special);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  [[nodiscard]] std::int64_t count() const { return count_; }  // ids that have a piece
  [[nodiscard]] bool contains(std::int64_t id) const {
    return id >= 0 && id < size() && (entries_[id].flags & present) != 0;
  }
  [[nodiscard]] bool is_added(TokenId id) const { return (entries_[id].flags & added) != 0; }
  [[nodiscard]] bool is_special(TokenId id) const { return (entries_[id].flags & special) != 0; }

  // The bytes that the spelling of a token stands for, and the spelling.
  [[nodiscard]] std::string_view bytes(TokenId id) const {
    return std::string_view(arena_).substr(entries_[id].offset, entries_[id].length);
  }
  [[nodiscard]] std::string spelled(TokenId id) const;
  // Whether the spelling of a token stands for exactly these bytes.
  [[nodiscard]] bool spells(TokenId id, std::string_view wanted) const {
    return bytes(id) == wanted && (entries_[id].flags & verbatim) == 0;
  }
  [[nodiscard]] std::optional<TokenId> find(std::string_view spelled) const;
  // Appends the bytes that a spelling stands for; false, with `bytes` as it was, where it holds a
  // character outside the alphabet.
  [[nodiscard]] bool append_bytes(std::string_view spelled, std::string& bytes) const;
  // The piece of the model whose spelling stands for exactly these bytes.
  [[nodiscard]] std::optional<TokenId> find_bytes(std::string_view bytes) const {
    return find_entry(bytes, 0);
  }

 private:
  // Flags of an entry.
  static constexpr unsigned present = 1;
  // Spelled with characters outside the byte alphabet: its bytes are its spelling.
  static constexpr unsigned verbatim = 2;
  static constexpr unsigned added = 4;
  static constexpr unsigned special = 8;

  struct Entry {
    std::uint32_t offset = 0;
    std::uint32_t length : 24 = 0;
    std::uint32_t flags : 8 = 0;
  };
  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = -1;
  };

  [[nodiscard]] std::optional<TokenId> find_entry(std::string_view bytes, unsigned kind) const;
  [[nodiscard]] std::size_t slot_of(std::string_view bytes, unsigned kind,
                                    std::uint32_t hash) const;
  void insert(TokenId id);
  void grow();

  Spelling spelling_ = Spelling::byte_level;
  std::string arena_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  std::int64_t count_ = 0;
};

}  // namespace onset
