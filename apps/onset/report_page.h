// The page of `onset report`.
#pragma once

#include <vector>

#include "onset/base/json.h"
#include "onset/report/page.h"
#include "report_model.h"

namespace onset::app {

// One model's page, or several models with a comparison first. `run` as in scan's JSON. Refers to
// nothing when it is returned.
[[nodiscard]] Page report_page(const std::vector<ModelReport>& reports, const OrderedJson& run);

// Everything but `run`: for each model the objects of scan, explain, rigidity and sinks.
[[nodiscard]] OrderedJson report_json(const ModelReport& report);

}  // namespace onset::app
