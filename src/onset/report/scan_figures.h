// The pictures of a scan's page: their data and captions. Inside the report room; torch-free.
#pragma once

#include <string>

#include "onset/report/scan_page.h"

namespace onset {

// "token 0 ("My")", or without a tokenizer "token 0 (id 5965)".
[[nodiscard]] std::string token_words(const ScanPageInput& input, std::int64_t token);
// The token that is drawn over the layers: "the first token", "token 3".
[[nodiscard]] std::string drawn_token(const ScanPageInput& input);

// The largest entries and the median after each layer.
[[nodiscard]] Figure magnitude_figure(const ScanPageInput& input);
// |x| over tokens x dims after the ME layer (or the candidate).
[[nodiscard]] Figure token_figure(const ScanPageInput& input);
// The paper's figure: |x| of one token over layers x dims.
[[nodiscard]] Figure layer_figure(const ScanPageInput& input);
// What input, attention and FFN contribute at each stage. Wants at least one stage.
[[nodiscard]] Figure stage_figure(const ScanPageInput& input);

}  // namespace onset
