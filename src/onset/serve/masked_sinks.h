// The first-token sink of one text, with and without a mask. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/massive/sink_meter.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;

// Runs the ids through the model under `mask` (null: as it is). At least two ids.
[[nodiscard]] SinkSummary first_token_sinks(const Model& model,
                                            const std::vector<std::int64_t>& ids,
                                            const MaskSpec* mask);

}  // namespace onset
