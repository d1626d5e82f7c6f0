// What `explain` found, as JSON: the fields of docs/json.md, the same in results and pages.
// Torch-free.
#pragma once

#include "onset/base/json.h"
#include "onset/massive/explain.h"

namespace onset {

// The objects of the parts; null for a part that was not asked for.
[[nodiscard]] OrderedJson target_json(const ExplainTarget& target, const ScanResult& scan);
[[nodiscard]] OrderedJson norm_json(const std::optional<NormResult>& norm);
[[nodiscard]] OrderedJson ffn_json(const std::optional<FfnResult>& ffn);
[[nodiscard]] OrderedJson fall_json(const std::optional<FallResult>& fall);
[[nodiscard]] OrderedJson factorial_json(const std::optional<FactorialResult>& factorial);
[[nodiscard]] OrderedJson vocabulary_json(const std::optional<VocabularyResult>& vocabulary);
[[nodiscard]] OrderedJson dose_json(const std::optional<DoseResult>& dose);

}  // namespace onset
