// Captions of a scan's pictures: each follows from the numbers it tells. Inside the report room;
// torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "onset/massive/scan.h"
#include "onset/report/states.h"
#include "onset/report/thin.h"

namespace onset {

// "above 100 and above 1000 times the median of its layer".
[[nodiscard]] std::string rule_words(const ScanOptions& options);

// "goes from 46.6 after layer 10 to 23,738, 10,587 times the median, after layer 11"; the input of
// block 0 is in no statistics.
[[nodiscard]] std::string jump_words(const PromptScan& prompt, std::int64_t layer);

// What the picture leaves out; empty where it shows every entry.
[[nodiscard]] std::string thinned_words(const BlockMaxima& maxima, std::string_view row_name);

// How far the largest point stands above the others at a linear height: below a twentieth of it
// they can hardly be told from the floor. Begins with a comma or semicolon, or is empty.
[[nodiscard]] std::string flatness_words(const BlockMaxima& maxima);

// How the drawn token's largest entry goes through the layers: the step at the ME layer (or none),
// what the residual stream carries on, how it ends.
[[nodiscard]] std::string wall_words(const PromptScan& prompt, const PromptStates& states);

}  // namespace onset
