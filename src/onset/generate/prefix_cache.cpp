#include "onset/generate/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "onset/model/rope.h"

namespace onset {

std::int64_t common_prefix(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

bool same_rope(const ModelConfig& config, std::int64_t length, std::int64_t other) {
  return std::none_of(config.ropes.begin(), config.ropes.end(), [&](const RopeConfig& rope) {
    return rope_changes_between(rope, length, other);
  });
}

PrefixCache::Found PrefixCache::longest(std::span<const std::int64_t> ids, const MaskSpec* mask) {
  const auto length = static_cast<std::int64_t>(ids.size());
  auto best = entries_.end();
  std::int64_t longest = 0;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->mask.get() != mask) continue;
    const std::int64_t common = common_prefix(entry->cache.ids(), ids);
    if (common <= longest || !same_rope(config_, entry->cache.rope_length(), length)) {
      continue;
    };
    best = entry;
    longest = common;
  }
  if (best == entries_.end()) return {};
  entries_.splice(entries_.begin(), entries_, best);
  return {&best->cache, longest};
}

void PrefixCache::put(KvCache cache, std::shared_ptr<const MaskSpec> mask) {
  if (cache.length() == 0 || cache.bytes() > most_bytes_) return;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto current = entry++;
    const KvCache& other = current->cache;
    if (current->mask != mask || !same_rope(config_, other.rope_length(), cache.rope_length())) {
      continue;
    }
    const std::int64_t common = common_prefix(other.ids(), cache.ids());
    if (common == cache.length()) {
      entries_.splice(entries_.begin(), entries_, current);
      return;
    }
    if (common == other.length()) {
      bytes_ -= current->bytes;
      entries_.erase(current);
    }
  }
  const std::int64_t size = cache.bytes();
  entries_.push_front({std::move(cache), std::move(mask), size});
  bytes_ += size;
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
}

void PrefixCache::clear() {
  entries_.clear();
  bytes_ = 0;
}

}  // namespace onset
