// What `onset compare` found, and its forms: JSON and a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/eval/comparison.h"
#include "onset/eval/sample_answer.h"
#include "text.h"

namespace onset::app {

// One changed item with what was answered in both runs.
struct ShownItem {
  std::int64_t doc = 0;
  double a = 0;
  double b = 0;
  bool higher = false;  // in B
  bool binary = false;
  SampleAnswer answer_a;
  SampleAnswer answer_b;
};
struct ShownItems {
  std::size_t row = 0;  // of the comparison
  std::vector<ShownItem> items;
};

struct CompareReport {
  EvaluationRun a;
  EvaluationRun b;
  ComparisonOptions options;
  Comparison comparison;
  std::vector<ShownItems> shown;
  bool members = false;  // a line for each task of a group too
};

// Of the first metric of each task, `count` items: as many that fell as rose, those with the larger
// change first. At most `most` in all.
[[nodiscard]] std::vector<ShownItems> shown_items(const Comparison& comparison,
                                                  const EvaluationRun& a, const EvaluationRun& b,
                                                  std::int64_t count, std::int64_t most);

// Everything but `run`: the fields that docs/compare.md lists.
[[nodiscard]] OrderedJson compare_json(const CompareReport& report);
// Tables and verdicts in words, 80 columns wide.
[[nodiscard]] std::string compare_text(const CompareReport& report, const TextStyle& style);

// How the numbers of a row are written: right-or-wrong scores in points, others as they are.
class RowNumbers {
 public:
  explicit RowNumbers(const ComparisonRow& row);
  [[nodiscard]] std::string score(double value) const;
  [[nodiscard]] std::string difference(double value) const;  // with its sign
  [[nodiscard]] std::string size(double value) const;        // of a difference, without one
  [[nodiscard]] std::string interval(
      const std::optional<Interval>& interval) const;  // "-1.2 to +3.4"
  [[nodiscard]] const char* unit() const;              // " points", " nats" or ""

 private:
  bool points_;
  bool nll_;
  int decimals_ = 2;
};

// "95 %", "99.9 %": of a level, in no more digits than it has.
[[nodiscard]] std::string share_text(double share);
// ".034", "<.001", "1".
[[nodiscard]] std::string p_text(double p);
// "piqa, acc"; with the filter where there is one.
[[nodiscard]] std::string row_name(const ComparisonRow& row);
// The rows' verdicts: paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> compare_paragraphs(const CompareReport& report);
// "model_name: A x, B y": paragraphs that are not wrapped.
[[nodiscard]] std::vector<std::string> setting_paragraphs(const CompareReport& report);

}  // namespace onset::app
