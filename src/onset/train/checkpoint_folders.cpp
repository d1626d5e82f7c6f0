#include "onset/train/checkpoint_folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include "onset/base/error.h"
#include "onset/base/file.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view partial_suffix = ".partial";

fs::path partial_of(const fs::path& path) {
  return path.parent_path() / str_cat(".", path.filename().string(), partial_suffix);
}

void bring_to_disk(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw file_error("open", path, errno);
  const bool done = ::fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  if (!done) throw file_error("write", path, error);
}

void bring_all_to_disk(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() || entry.is_directory()) bring_to_disk(entry.path());
  }
  bring_to_disk(folder);
}

// Removed under a name that nothing reads, so that a process killed half-way leaves no checkpoint
// with files missing.
void remove_folder(const fs::path& path) {
  const fs::path doomed = partial_of(path);
  std::error_code error;
  fs::remove_all(doomed, error);
  if (::rename(path.c_str(), doomed.c_str()) != 0) throw file_error("remove", path, errno);
  fs::remove_all(doomed, error);
  if (error) throw file_error("remove", path, error.value());
}

// What a process that was killed left of a checkpoint.
bool is_leftover(const std::string& name) {
  return name.starts_with(str_cat(".", checkpoint_prefix)) && name.ends_with(partial_suffix);
}

void publish(const fs::path& partial, const fs::path& path) {
  if (fs::exists(fs::symlink_status(path))) {
    // In one step, so that a name that stood never misses.
    if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
      std::error_code ignored;
      fs::remove_all(partial, ignored);
      return;
    }
    if (errno != EINVAL && errno != ENOSYS) throw file_error("replace", path, errno);
    const fs::path old = partial.string() + "-old" + std::string(partial_suffix);
    if (::rename(path.c_str(), old.c_str()) != 0) throw file_error("replace", path, errno);
    if (::rename(partial.c_str(), path.c_str()) != 0) throw file_error("replace", path, errno);
    std::error_code ignored;
    fs::remove_all(old, ignored);
    return;
  }
  if (::rename(partial.c_str(), path.c_str()) != 0) throw file_error("write", path, errno);
}

}  // namespace

void write_folder_atomically(const fs::path& path,
                             const std::function<void(const fs::path& folder)>& write) {
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path partial = partial_of(path);
  std::error_code error;
  fs::remove_all(partial, error);
  make_folder(partial);
  try {
    write(partial);
    bring_all_to_disk(partial);
    publish(partial, path);
  } catch (...) {
    fs::remove_all(partial, error);
    throw;
  }
  bring_to_disk(parent);
}

std::vector<CheckpointFolder> prune_checkpoints(const fs::path& output, std::int64_t keep,
                                                std::optional<std::int64_t> best_step) {
  if (keep < 1) throw usage_error(str_cat("keep ", keep, " checkpoints: expected 1 or more"));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(output, error)) {
    std::error_code ignored;
    if (is_leftover(entry.path().filename().string())) fs::remove_all(entry.path(), ignored);
  }
  const auto all = list_checkpoints(output);
  std::vector<CheckpointFolder> removed;
  const auto kept = std::min(all.size(), static_cast<std::size_t>(keep));
  for (std::size_t i = 0; i + kept < all.size(); ++i) {
    if (all[i].step == best_step) continue;
    remove_folder(all[i].path);
    removed.push_back(all[i]);
  }
  return removed;
}

}  // namespace onset
