// A text of everyday prose for analyses that need one and were given none.
#pragma once

#include <string_view>

namespace onset::app {

// Written for onset; about 800 tokens of a usual vocabulary. Results on it say how one condition
// compares with another, not how good a model is.
[[nodiscard]] std::string_view sample_text();

}  // namespace onset::app
