// The pictures of an ablation: scores against how much is masked, and against the sinks that are
// left. Torch-free.
#pragma once

#include <vector>

#include "onset/eval/ablation.h"
#include "onset/report/page.h"

namespace onset {

// Score, or perplexity, of every arm over the rate (or k), with the interval of its difference from
// the baseline; a column a view.
[[nodiscard]] Figure ablation_score_figure(const AblationResult& result);

// Each setting's sink rate against its score. Only where sinks were measured.
[[nodiscard]] Figure ablation_sink_figure(const AblationResult& result);

// "piqa, acc".
[[nodiscard]] std::string column_name(const ScoreColumn& column);

}  // namespace onset
