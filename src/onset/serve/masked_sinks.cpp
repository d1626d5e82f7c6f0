#include "onset/serve/masked_sinks.h"

#include <span>

#include "onset/massive/sinks.h"
#include "onset/model/hooks.h"
#include "onset/model/model.h"
#include "onset/wemask/mask.h"

namespace onset {

SinkSummary first_token_sinks(const Model& model, const std::vector<std::int64_t>& ids,
                              const MaskSpec* mask) {
  Hooks hooks(model.config().layer_count());
  if (mask != nullptr) add_mask(hooks, *mask, model);
  return measure_sinks(model, std::span(&ids, 1), {}, {}, &hooks).summary;
}

}  // namespace onset
