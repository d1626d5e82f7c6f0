// What `onset ablate` found, and its forms: JSON, a table and a page.
#pragma once

#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/eval/ablation.h"
#include "onset/report/page.h"
#include "text.h"

namespace onset::app {

struct AblateReport {
  std::string path;   // of the model, as given
  OrderedJson model;  // the `model` object
  AblationResult result;
  std::int64_t budget = 0;  // 0: none
};

// Everything but `run`: the fields that docs/ablate.md lists.
[[nodiscard]] OrderedJson ablate_json(const AblateReport& report);
// A row a setting for each task's first metric, and the verdict in words; 80 columns wide.
[[nodiscard]] std::string ablate_text(const AblateReport& report, const TextStyle& style);
[[nodiscard]] Page ablate_page(const AblateReport& report, const OrderedJson& run);

// The verdict: paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> ablate_paragraphs(const AblateReport& report);

// How the numbers of a column are written: shares in points, others as they are.
class ColumnNumbers {
 public:
  explicit ColumnNumbers(const ScoreColumn& column);
  [[nodiscard]] std::string score(double value) const;
  [[nodiscard]] std::string difference(double value) const;  // with its sign
  [[nodiscard]] std::string interval(const std::optional<Interval>& interval) const;
  [[nodiscard]] const char* unit() const;

 private:
  bool points_;
  bool nll_;
};

// The columns that the table shows: the first metric of each task.
[[nodiscard]] std::vector<std::size_t> shown_columns(const AblationResult& result);

}  // namespace onset::app
