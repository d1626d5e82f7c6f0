// The folders `checkpoint-N` of a run: each appears whole or not at all, and old ones are taken
// away only when a newer one stands. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "onset/checkpoint/run_checkpoints.h"

namespace onset {

// Calls `write` with an empty folder beside `path`; when it returns, brings all of that folder to
// the disk and gives it the name `path`. A folder of that name is replaced as a whole. A process
// killed before leaves a folder ".NAME.partial", which nothing reads and the next call for that
// name removes. Throws resource errors (disk full, no permission) that name the path.
void write_folder_atomically(const std::filesystem::path& path,
                             const std::function<void(const std::filesystem::path& folder)>& write);

// Removes all but the latest `keep` (1 or more; the one of `best_step` on top of them), and what
// killed processes left behind. Returns what it removed.
std::vector<CheckpointFolder> prune_checkpoints(const std::filesystem::path& output,
                                                std::int64_t keep,
                                                std::optional<std::int64_t> best_step);

}  // namespace onset
