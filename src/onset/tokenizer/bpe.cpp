#include "onset/tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "onset/base/error.h"
#include "onset/tokenizer/hash.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

// Below this many symbols a scan for the lowest rank beats a heap.
constexpr std::size_t short_piece = 48;
constexpr std::size_t cache_slots = std::size_t{1} << 14;  // 1 MB

std::uint64_t pair_key(TokenId left, TokenId right) {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
         static_cast<std::uint32_t>(right);
}

}  // namespace

void CharTable::set(char32_t code, TokenId id) {
  const std::size_t page = code / page_size;
  if (page >= pages_.size()) pages_.resize(page + 1, -1);
  if (pages_[page] < 0) {
    pages_[page] = static_cast<std::int32_t>(ids_.size());
    ids_.resize(ids_.size() + page_size, -1);
  }
  ids_[static_cast<std::size_t>(pages_[page]) + code % page_size] = id;
}

MergeTable::MergeTable(const std::vector<Rule>& rules)
    : slots_(std::bit_ceil(std::max<std::size_t>(rules.size(), 8) * 2)),
      shift_(64U - static_cast<unsigned>(std::countr_zero(slots_.size()))) {
  // The slots of the next few rules are fetched while one is entered: the table is larger than a
  // core's cache.
  constexpr std::size_t ahead = 16;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (i + ahead < rules.size()) {
      const Rule& later = rules[i + ahead];
      __builtin_prefetch(&slots_[mix_bits(pair_key(later.left, later.right)) >> shift_], 1);
    }
    const std::uint64_t pair = pair_key(rules[i].left, rules[i].right);
    slots_[slot_of(pair)] = {pair, Merge(rules[i].rank, rules[i].result)};
  }
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = mix_bits(pair) >> shift_;
  while (slots_[at].pair != pair && slots_[at].pair != empty) at = (at + 1) & mask;
  return at;
}

Merge MergeTable::find(TokenId left, TokenId right) const {
  return slots_[slot_of(pair_key(left, right))].merge;
}

PieceCache::PieceCache() : slots_(cache_slots) {}

bool PieceCache::find(std::string_view piece, std::uint64_t hash, std::vector<TokenId>& ids) const {
  const Slot& slot = slots_[hash % cache_slots];
  if (slot.length != piece.size() ||
      std::memcmp(slot.bytes.data(), piece.data(), piece.size()) != 0) {
    return false;
  }
  ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
  return true;
}

void PieceCache::put(std::string_view piece, std::uint64_t hash, const TokenId* ids,
                     std::size_t count) {
  if (count > max_ids) return;
  Slot& slot = slots_[hash % cache_slots];
  slot.length = static_cast<std::uint8_t>(piece.size());
  slot.count = static_cast<std::uint8_t>(count);
  std::memcpy(slot.bytes.data(), piece.data(), piece.size());
  std::copy_n(ids, count, slot.ids.begin());
}

void Bpe::encode(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                 std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  if (!PieceCache::takes(piece)) {
    encode_uncached(piece, vocabulary, scratch, ids);
    return;
  }
  const std::uint64_t hash = hash_bytes(piece);
  if (scratch.cache.find(piece, hash, ids)) return;
  const std::size_t from = ids.size();
  encode_uncached(piece, vocabulary, scratch, ids);
  scratch.cache.put(piece, hash, ids.data() + from, ids.size() - from);
}

void Bpe::encode_uncached(std::string_view piece, const Vocabulary& vocabulary, Scratch& scratch,
                          std::vector<TokenId>& ids) const {
  if (ignore_merges) {
    // Added tokens are no part of the model, even where a file lists them in its vocabulary.
    const auto whole = vocabulary.find_bytes(piece);
    if (whole && !vocabulary.is_added(*whole)) {
      ids.push_back(*whole);
      return;
    }
  }
  const std::size_t from = ids.size();
  if (start == Symbols::bytes) {
    append_symbols(piece, ids);
  } else {
    append_chars(piece, ids);
  }
  if (ids.size() - from > short_piece) {
    merge_long(scratch, ids, from);
  } else if (ids.size() - from >= 2) {
    merge_short(ids, from);
  }
  if (!replacements.empty()) replace(ids, from);
}

void Bpe::append_symbols(std::string_view piece, std::vector<TokenId>& ids) const {
  // Runs of unknown bytes become one token when they are fused. As in the reference, a byte that
  // falls back to its pieces comes before unknown ones that are still waiting.
  std::size_t waiting = 0;
  const auto flush = [&] {
    ids.insert(ids.end(), waiting, unknown.value_or(-1));
    waiting = 0;
  };
  for (const char byte : piece) {
    const Symbol& symbol = symbols[static_cast<unsigned char>(byte)];
    if (symbol.unknown) {
      waiting = fuse_unknown ? 1 : waiting + 1;
    } else {
      if (waiting > 0 && symbol.count > 0 && !symbol.fallback) flush();
      ids.insert(ids.end(), symbol.ids.begin(), symbol.ids.begin() + symbol.count);
    }
  }
  if (waiting > 0) flush();
}

void Bpe::append_chars(std::string_view piece, std::vector<TokenId>& ids) const {
  std::size_t waiting = 0;  // unknown characters, as above
  const auto flush = [&] {
    ids.insert(ids.end(), waiting, unknown.value_or(-1));
    waiting = 0;
  };
  for (std::size_t at = 0; at < piece.size();) {
    const DecodedChar next = decode_char(piece, at);
    const std::string_view bytes = piece.substr(at, next.length);
    at += next.length;
    if (const TokenId id = chars.find(next.code); id >= 0) {
      if (waiting > 0) flush();
      ids.push_back(id);
    } else if (std::all_of(bytes.begin(), bytes.end(), [&](char byte) {
                 return symbols[static_cast<unsigned char>(byte)].fallback;
               })) {
      for (const char byte : bytes) ids.push_back(symbols[static_cast<unsigned char>(byte)].ids[0]);
    } else if (unknown) {
      waiting = fuse_unknown ? 1 : waiting + 1;
    }
  }
  if (waiting > 0) flush();
}

void Bpe::replace(std::vector<TokenId>& ids, std::size_t from) const {
  const std::vector<TokenId> merged(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.end());
  ids.resize(from);
  const auto append = [&](TokenId id) {
    const bool fused = fuse_unknown && id == unknown && ids.size() > from && ids.back() == id;
    if (!fused) ids.push_back(id);
  };
  for (const TokenId id : merged) {
    const auto row =
        std::lower_bound(replacements.begin(), replacements.end(), id,
                         [](const auto& r, TokenId wanted) { return r.first < wanted; });
    if (row == replacements.end() || row->first != id) {
      append(id);
    } else {
      std::for_each(row->second.begin(), row->second.end(), append);
    }
  }
}

void Bpe::merge_short(std::vector<TokenId>& ids, std::size_t from) const {
  std::size_t count = ids.size() - from;
  TokenId* symbol = ids.data() + from;
  std::array<Merge, short_piece> merge;  // [i] of symbols i and i + 1
  for (std::size_t i = 0; i + 1 < count; ++i) merge[i] = merges.find(symbol[i], symbol[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (merge[i] < merge[best]) best = i;
    }
    if (!merge[best].exists()) break;
    symbol[best] = merge[best].result();
    std::copy(symbol + best + 2, symbol + count, symbol + best + 1);
    std::copy(merge.begin() + best + 1, merge.begin() + count - 1, merge.begin() + best);
    --count;
    if (best > 0) merge[best - 1] = merges.find(symbol[best - 1], symbol[best]);
    if (best + 1 < count) merge[best] = merges.find(symbol[best], symbol[best + 1]);
  }
  ids.resize(from + count);
}

void Bpe::merge_long(Scratch& scratch, std::vector<TokenId>& ids, std::size_t from) const {
  const std::size_t symbols_count = ids.size() - from;
  require_input(symbols_count <= INT32_MAX, "a word of more than 2 GB");
  const auto count = static_cast<std::int32_t>(symbols_count);
  auto& nodes = scratch.nodes;
  auto& heap = scratch.heap;
  nodes.clear();
  heap.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    nodes.push_back({ids[from + i], i - 1, i + 1 < count ? i + 1 : -1});
  }
  const auto later = [](const Scratch::Candidate& a, const Scratch::Candidate& b) {
    return a.merge.rank() == b.merge.rank() ? a.left > b.left : b.merge < a.merge;
  };
  const auto candidate = [&](std::int32_t left) {
    const std::int32_t right = nodes[left].next;
    const Merge merge = merges.find(nodes[left].id, nodes[right].id);
    if (merge.exists()) heap.push_back({merge, left, nodes[left].id, nodes[right].id});
    return merge.exists();
  };
  for (std::int32_t i = 0; i + 1 < count; ++i) candidate(i);
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Scratch::Candidate next = heap.back();
    heap.pop_back();
    Scratch::Node& left = nodes[next.left];
    // Overtaken when either neighbour has been merged since; a swallowed node has id -1.
    if (left.id != next.left_id || left.next < 0 || nodes[left.next].id != next.right_id) continue;
    const std::int32_t right = left.next;
    left.id = next.merge.result();
    left.next = nodes[right].next;
    nodes[right].id = -1;
    if (left.next >= 0) nodes[left.next].previous = next.left;
    if (left.next >= 0 && candidate(next.left)) std::push_heap(heap.begin(), heap.end(), later);
    if (left.previous >= 0 && candidate(left.previous)) {
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
  ids.resize(from);
  for (std::int32_t at = 0; at >= 0; at = nodes[at].next) ids.push_back(nodes[at].id);
}

}  // namespace onset
