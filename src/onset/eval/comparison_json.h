// A comparison as JSON (docs/compare.md). Torch-free.
#pragma once

#include "onset/base/json.h"
#include "onset/eval/comparison.h"

namespace onset {

// Everything but `run` and the answers of the changed items.
[[nodiscard]] OrderedJson comparison_json(const Comparison& comparison,
                                          const ComparisonOptions& options);

[[nodiscard]] const char* name_of(PairedTest test);
[[nodiscard]] const char* name_of(IntervalMethod method);

}  // namespace onset
