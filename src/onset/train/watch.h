// How massive activations emerge in training: scan's measurement every so many steps.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/base/json.h"
#include "onset/massive/scan.h"
#include "onset/train/policy.h"

namespace onset {

// One line of watch.jsonl: {"step", "me_layer" (null: none), "agreement", "massive_dims",
// "layers": [{"max_abs", "median_abs", "ratio"}, ..]}, layers by the first prompt; under the
// policy's mask, where it has one.
[[nodiscard]] OrderedJson watch_line(const Policy& policy, const std::vector<ScanPrompt>& prompts,
                                     std::int64_t step);

}  // namespace onset
