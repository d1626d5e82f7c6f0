// The folder of a run before it begins: whether the run may write there, the checkpoint that it
// goes on from, and what must be the same then. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "onset/base/json.h"
#include "onset/base/ranks.h"
#include "onset/train/settings.h"

namespace onset {

struct ModelConfig;

// The checkpoint that settings resume from; nothing where they begin anew. Throws an input error
// where there is none such.
[[nodiscard]] std::optional<std::filesystem::path> resumed_checkpoint(
    const TrainerSettings& settings);

// Throws a usage error where a file stands in the place of the folder, or of one that it lies in.
void require_folder(const std::filesystem::path& output);

// Throws an input error where the folder holds the numbers or the checkpoints of a run.
void refuse_another_run(const std::filesystem::path& output);

// What a run that goes on must have the same (TrainState::identity). `data` names the data's
// content, `steps` are those of the whole run.
[[nodiscard]] OrderedJson identity_of(const TrainSettings& settings, const ModelConfig& config,
                                      const std::string& data, std::int64_t steps,
                                      const Ranks& ranks);

}  // namespace onset
