// Stages as JSON, the same in the results and in the pages. Torch-free.
#pragma once

#include <vector>

#include "onset/base/json.h"
#include "onset/massive/scan.h"

namespace onset {

// An array, one object a stage; the fields stand in docs/json.md.
[[nodiscard]] OrderedJson stages_json(const std::vector<Stage>& stages);

}  // namespace onset
