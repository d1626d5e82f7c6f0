// What `onset ablate` asks: tasks with their items, and texts whose sinks are measured.
#pragma once

#include <optional>
#include <vector>

#include "ablate_options.h"
#include "onset/eval/ablation_run.h"
#include "onset/model/config.h"

namespace onset::app {

[[nodiscard]] std::vector<AblationTask> tasks_of(const AblateOptions& options,
                                                 const TaskSelection& selection,
                                                 const ModelConfig& config,
                                                 const Tokenizer& tokenizer,
                                                 const std::optional<ChatFormat>& chat);

// Without what a scan finds.
[[nodiscard]] AblationInput input_of(const AblateOptions& options, std::vector<AblationTask> tasks,
                                     const Tokenizer& tokenizer);

}  // namespace onset::app
