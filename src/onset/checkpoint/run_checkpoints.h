// The folders `checkpoint-N` that a run of training leaves in its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onset {

struct CheckpointFolder {
  std::filesystem::path path;
  std::int64_t step = 0;
};

// What the names of all of them begin with.
inline constexpr const char* checkpoint_prefix = "checkpoint-";

// What a run writes when it has ended, beside them.
inline constexpr const char* final_folder = "final";

// OUTPUT/checkpoint-STEP.
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& output,
                                                    std::int64_t step);

// Those in a run's folder, the earliest first; none where there is no such folder.
[[nodiscard]] std::vector<CheckpointFolder> list_checkpoints(const std::filesystem::path& output);
[[nodiscard]] std::optional<CheckpointFolder> latest_checkpoint(
    const std::filesystem::path& output);

// A hint for someone who asks for what a run writes at its end, where it has not ended: names its
// latest checkpoint. Empty for other paths, and where there is none.
[[nodiscard]] std::string unfinished_run_hint(const std::filesystem::path& missing);

}  // namespace onset
