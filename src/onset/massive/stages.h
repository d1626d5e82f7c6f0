// The stages of one token in a traced prompt. Inside the massive room.
#pragma once

#include <cstdint>
#include <vector>

#include "onset/massive/scan.h"
#include "onset/massive/trace.h"

namespace onset {

// In the order of their layers; `min_abs` is what the larger side of a stage must exceed.
[[nodiscard]] std::vector<Stage> find_stages(const PromptTrace& trace, std::int64_t token,
                                             double min_abs);

}  // namespace onset
