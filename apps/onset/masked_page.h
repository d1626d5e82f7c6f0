// What a mask changes, as a section of a page: of `scan --report` and of `report`.
#pragma once

#include "explain_report.h"
#include "onset/report/page.h"
#include "rigidity_report.h"
#include "scan_report.h"
#include "sinks_report.h"

namespace onset::app {

// A masked scan and what else was measured under the mask; null where it was not.
struct MaskedParts {
  const ModelScan& scan;
  const Explanation* explanation = nullptr;
  const ModelRigidity* rigidity = nullptr;
  const ModelSinks* sinks = nullptr;
};

// Words, the numbers as a table, and the pictures.
[[nodiscard]] Section masked_section(const MaskedParts& parts);
// "What does the mask change?" in a few sentences.
[[nodiscard]] Fact masked_answer(const MaskedParts& parts);

}  // namespace onset::app
