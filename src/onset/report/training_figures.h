// The pictures of a run of `train`. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "onset/report/page.h"
#include "onset/report/training_page.h"
#include "onset/train/metrics.h"

namespace onset {

// Metrics of one kind in one picture.
struct CurveGroup {
  std::string id;
  std::string axis;  // the title of the vertical axis
  std::string read;
  std::vector<std::string> names;  // of metrics; "rewards/*/mean" stands for all such
  bool logarithmic = false;
};

// Lines over the steps, of those metrics that there are; no picture where there are none. With
// many points a running mean goes before the values.
[[nodiscard]] std::vector<Figure> curve_figures(const std::vector<MetricsLine>& lines);

// The largest |x| by layer and step, and the ME layer. `watched` is not empty.
[[nodiscard]] Figure watch_figure(const std::vector<WatchedStep>& watched);

// Mean over the lines [begin, end) that have the metric; NaN where none has.
[[nodiscard]] double mean_of_metric(const std::vector<MetricsLine>& lines, const std::string& name,
                                    std::size_t begin, std::size_t end);

}  // namespace onset
