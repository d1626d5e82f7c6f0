// Masks of the requests that a generator runs: checked once, and one object for all with the same
// content. Torch-free. Inside the generate room.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;

class MaskTable {
 public:
  explicit MaskTable(const Model& model) : model_(model) {}

  // The mask that stands for all of this content: equal content, equal pointer, as long as somebody
  // holds it; null for null. Throws as check_mask does.
  [[nodiscard]] std::shared_ptr<const MaskSpec> resolve(
      const std::shared_ptr<const MaskSpec>& spec);

 private:
  const Model& model_;
  std::map<std::string, std::weak_ptr<const MaskSpec>> by_content_;
  // What objects that were seen before stand for, so that they are not written out again.
  struct Seen {
    std::weak_ptr<const MaskSpec> object;
    std::weak_ptr<const MaskSpec> resolved;
  };
  std::map<const MaskSpec*, Seen> seen_;
};

}  // namespace onset
