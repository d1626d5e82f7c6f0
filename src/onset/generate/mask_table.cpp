#include "onset/generate/mask_table.h"

#include "onset/wemask/mask.h"
#include "onset/wemask/mask_json.h"

namespace onset {

std::shared_ptr<const MaskSpec> MaskTable::resolve(const std::shared_ptr<const MaskSpec>& spec) {
  if (spec == nullptr) return nullptr;
  if (const auto found = seen_.find(spec.get()); found != seen_.end()) {
    const auto object = found->second.object.lock();
    auto resolved = found->second.resolved.lock();
    if (object == spec && resolved != nullptr) return resolved;
  }
  static_cast<void>(check_mask(*spec, model_));
  std::erase_if(by_content_, [](const auto& row) { return row.second.expired(); });
  std::erase_if(seen_, [](const auto& row) { return row.second.resolved.expired(); });
  auto& kept = by_content_[mask_json(*spec).dump()];
  auto resolved = kept.lock();
  if (resolved == nullptr) {
    resolved = spec;
    kept = resolved;
  }
  seen_[spec.get()] = {spec, resolved};
  return resolved;
}

}  // namespace onset
