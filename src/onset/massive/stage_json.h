// Stages as JSON, the same in the results and in the pages. Torch-free.
#pragma once

#include <vector>

#include "onset/base/json.h"
#include "onset/massive/scan.h"

namespace onset {

// An array, one object a stage; the fields stand in docs/json.md.
[[nodiscard]] OrderedJson stages_json(const std::vector<Stage>& stages);

// `largest` of a prompt: the entry at the ME layer (or null) and the largest of all.
[[nodiscard]] OrderedJson largest_json(const PromptScan& prompt);

}  // namespace onset
