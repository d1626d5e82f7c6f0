// A run of `train` in words, from its settings. Torch-free.
#pragma once

#include <optional>
#include <string>

#include "onset/train/settings.h"

namespace onset {

// The settings that a run wrote into its folder (settings.toml). Nothing where they are not such,
// or another onset's.
[[nodiscard]] std::optional<TrainSettings> written_settings(const std::string& toml);

// "DPO of smollm2 on pairs.jsonl, under wemask.json"
[[nodiscard]] std::string run_heading(const TrainSettings& settings);

// Method, model and what of it is trained, data and mask, in sentences.
[[nodiscard]] std::string run_sentences(const TrainSettings& settings);

}  // namespace onset
