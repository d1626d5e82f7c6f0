#include "onset/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <bit>

#include "onset/base/error.h"
#include "onset/tokenizer/byte_level.h"
#include "onset/tokenizer/hash.h"

namespace onset {
namespace {

constexpr std::size_t max_piece_bytes = (std::size_t{1} << 24) - 1;

std::uint32_t entry_hash(std::string_view bytes, unsigned kind) {
  return static_cast<std::uint32_t>(hash_bytes(bytes) >> 16) + kind;
}

}  // namespace

void Vocabulary::reserve(std::size_t pieces, std::size_t bytes) {
  entries_.reserve(pieces);
  arena_.reserve(bytes);
}

std::size_t Vocabulary::slot_of(std::string_view bytes, unsigned kind, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id >= 0) {
    const TokenId id = slots_[at].id;
    if (slots_[at].hash == hash && this->bytes(id) == bytes &&
        (entries_[id].flags & verbatim) == kind) {
      break;
    }
    at = (at + 1) & mask;
  }
  return at;
}

void Vocabulary::grow() {
  std::vector<Slot> old(std::max<std::size_t>(slots_.size() * 2, 16));
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].id >= 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

bool Vocabulary::add(std::string_view spelled, TokenId id) {
  require_input(id >= 0 && id <= max_token_id, "token id ", id, " is out of range");
  require_input(spelled.size() <= max_piece_bytes, "token ", id, " is longer than 16 MB");
  if (contains(id)) return this->spelled(id) == spelled;
  const std::size_t offset = arena_.size();
  unsigned kind = 0;
  if (!append_bytes(spelled, arena_)) {
    arena_.append(spelled);
    kind = verbatim;
  }
  require_input(arena_.size() <= UINT32_MAX, "the vocabulary is larger than 4 GB");
  if (id >= size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  Entry& entry = entries_[id];
  entry.offset = static_cast<std::uint32_t>(offset);
  entry.length = static_cast<std::uint32_t>(arena_.size() - offset) & 0xFFFFFFU;
  entry.flags = (present | kind) & 0xFFU;
  ++count_;
  if (!slots_.empty()) insert(id);
  return true;
}

void Vocabulary::insert(TokenId id) {
  if (static_cast<std::size_t>(count_) * 2 > slots_.size()) grow();
  const unsigned kind = entries_[id].flags & verbatim;
  const std::uint32_t hash = entry_hash(bytes(id), kind);
  slots_[slot_of(bytes(id), kind, hash)] = {hash, id};
}

void Vocabulary::index() {
  slots_.assign(std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(count_, 8)) * 2), {});
  // The slots of the next few pieces are fetched while one is entered: the table is larger than a
  // core's cache.
  constexpr std::int64_t ahead = 16;
  std::array<std::uint32_t, ahead> hashes{};
  for (std::int64_t i = 0; i < size() + ahead; ++i) {
    if (const std::int64_t id = i - ahead; id >= 0 && contains(id)) {
      const auto token = static_cast<TokenId>(id);
      const std::uint32_t hash = hashes[id % ahead];
      slots_[slot_of(bytes(token), entries_[id].flags & verbatim, hash)] = {hash, token};
    }
    if (!contains(i)) continue;
    hashes[i % ahead] = entry_hash(bytes(static_cast<TokenId>(i)), entries_[i].flags & verbatim);
    __builtin_prefetch(&slots_[hashes[i % ahead] & (slots_.size() - 1)], /*write=*/1);
  }
}

void Vocabulary::mark_added(TokenId id, bool is_special) {
  const unsigned flags = entries_[id].flags | added | (is_special ? special : 0U);
  entries_[id].flags = flags & 0xFFU;
}

bool Vocabulary::append_bytes(std::string_view spelled, std::string& bytes) const {
  if (spelling_ == Spelling::byte_level) return append_bytes_of(spelled, bytes);
  bytes.append(spelled);
  return true;
}

std::string Vocabulary::spelled(TokenId id) const {
  const bool as_is = spelling_ == Spelling::plain || (entries_[id].flags & verbatim) != 0;
  return as_is ? std::string(bytes(id)) : spelling_of(bytes(id));
}

std::optional<TokenId> Vocabulary::find_entry(std::string_view bytes, unsigned kind) const {
  if (slots_.empty()) return std::nullopt;
  const Slot& slot = slots_[slot_of(bytes, kind, entry_hash(bytes, kind))];
  return slot.id < 0 ? std::nullopt : std::optional(slot.id);
}

std::optional<TokenId> Vocabulary::find(std::string_view spelled) const {
  std::string bytes;
  return append_bytes(spelled, bytes) ? find_entry(bytes, 0) : find_entry(spelled, verbatim);
}

}  // namespace onset
