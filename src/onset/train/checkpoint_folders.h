// The folders `checkpoint-N` of a run: each appears whole or not at all, and old ones are taken
// away only when a newer one stands. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace onset {

struct CheckpointFolder {
  std::filesystem::path path;
  std::int64_t step = 0;
};

// Calls `write` with an empty folder beside `path`; when it returns, brings all of that folder to
// the disk and gives it the name `path`. A folder of that name is replaced as a whole. A process
// killed before leaves a folder ".NAME.partial", which nothing reads and the next call for that
// name removes. Throws resource errors (disk full, no permission) that name the path.
void write_folder_atomically(const std::filesystem::path& path,
                             const std::function<void(const std::filesystem::path& folder)>& write);

// OUTPUT/checkpoint-STEP.
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& output,
                                                    std::int64_t step);

// Those in a run's folder, the earliest first; none where there is no such folder.
[[nodiscard]] std::vector<CheckpointFolder> list_checkpoints(const std::filesystem::path& output);
[[nodiscard]] std::optional<CheckpointFolder> latest_checkpoint(
    const std::filesystem::path& output);

// Removes all but the latest `keep` (1 or more; the one of `best_step` on top of them), and what
// killed processes left behind. Returns what it removed.
std::vector<CheckpointFolder> prune_checkpoints(const std::filesystem::path& output,
                                                std::int64_t keep,
                                                std::optional<std::int64_t> best_step);

}  // namespace onset
