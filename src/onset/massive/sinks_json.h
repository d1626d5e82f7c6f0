// Sinks as JSON: the fields that docs/json.md lists, for the verb and the report. Torch-free.
#pragma once

#include <cstdint>
#include <span>

#include "onset/base/json.h"
#include "onset/massive/sinks.h"

namespace onset {

// `layers`: one object a layer. `windows`: each layer's sliding window, 0 for none.
[[nodiscard]] OrderedJson sink_layers_json(const SinksResult& result,
                                           std::span<const std::int64_t> windows);
// Of one sample: `sink_rate` and `alpha` [L][H].
[[nodiscard]] OrderedJson sink_sample_json(const SequenceSinks& sample, double threshold);

}  // namespace onset
