// Keys and values of sequences that are done, for later ones that begin alike.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "onset/model/cache.h"
#include "onset/model/config.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

// How many tokens two sequences have in common from the start.
[[nodiscard]] std::int64_t common_prefix(std::span<const std::int64_t> a,
                                         std::span<const std::int64_t> b);

// Whether RoPE turns sequences of the two lengths alike (it does but for longrope), so that states
// of one can be used in the other.
[[nodiscard]] bool same_rope(const ModelConfig& config, std::int64_t length, std::int64_t other);

// What is common is used of an entry only where the mask is the same object (see MaskTable), so
// that states never pass from one mask to another. The entries used longest ago go first.
class PrefixCache {
 public:
  PrefixCache(const ModelConfig& config, std::int64_t most_bytes)
      : config_(config), most_bytes_(most_bytes) {}

  struct Found {
    const KvCache* cache = nullptr;  // valid until the next put() or clear()
    std::int64_t length = 0;
  };
  // The entry with the longest common prefix with `ids`, which will be `ids.size()` tokens long.
  [[nodiscard]] Found longest(std::span<const std::int64_t> ids, const MaskSpec* mask);
  void put(KvCache cache, std::shared_ptr<const MaskSpec> mask);
  void clear();
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    KvCache cache;
    std::shared_ptr<const MaskSpec> mask;
    std::int64_t bytes = 0;
  };

  const ModelConfig& config_;
  std::int64_t most_bytes_;
  std::int64_t bytes_ = 0;
  std::list<Entry> entries_;  // the last used first
};

}  // namespace onset
