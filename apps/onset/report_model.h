// All that `onset report` finds out about one model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain_report.h"
#include "explain_text.h"
#include "mask_option.h"
#include "options.h"
#include "prompts.h"
#include "rigidity_report.h"
#include "scan_report.h"
#include "sinks_report.h"

namespace onset::app {

// What is measured beside the scan.
struct ReportParts {
  ExplainParts explain;
  bool rigidity = true;
  bool sinks = true;

  [[nodiscard]] bool any_explain() const;
};

[[nodiscard]] std::vector<std::string> report_part_names();

// "norm,sinks" for --only and --skip. Usage errors for unknown names and for both at once.
[[nodiscard]] ReportParts parse_report_parts(const std::string& only, const std::string& skip);

struct ReportOptions {
  ReportParts parts;
  ScanOptions scan;
  ExperimentTextOptions text;
  PromptOptions prompts;
  MaskFileOptions mask;
  ComputeOptions compute;
};

struct ModelReport {
  ModelScan scan;  // path, model, prompts, mask; `failure` where there is no result
  std::optional<Explanation> explanation;
  std::optional<ModelRigidity> rigidity;
  std::optional<ModelSinks> sinks;
  std::vector<std::string> left_out;  // sentences: what is not in the report, and why
};

// Fills the report as far as it gets, so that what is known of a model that fails can be told. What
// a model cannot have, such as an explanation without an ME layer, is left out and said.
void measure_report(const std::vector<PromptSource>& sources, const ReportOptions& options,
                    const Log& log, ModelReport& report);

}  // namespace onset::app
