#include "onset/checkpoint/run_checkpoints.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "onset/base/error.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view prefix = checkpoint_prefix;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  std::int64_t step = 0;
  const auto result = std::from_chars(name.data() + prefix.size(), end, step);
  if (result.ec != std::errc() || result.ptr != end || step < 0) return std::nullopt;
  return step;
}

}  // namespace

fs::path checkpoint_path(const fs::path& output, std::int64_t step) {
  return output / str_cat(checkpoint_prefix, step);
}

std::vector<CheckpointFolder> list_checkpoints(const fs::path& output) {
  std::vector<CheckpointFolder> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(output, error)) {
    const auto step = step_of(entry.path().filename().string());
    if (step && entry.is_directory()) found.push_back({entry.path(), *step});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  return found;
}

std::optional<CheckpointFolder> latest_checkpoint(const fs::path& output) {
  auto found = list_checkpoints(output);
  if (found.empty()) return std::nullopt;
  return std::move(found.back());
}

std::string unfinished_run_hint(const fs::path& missing) {
  // "run/final/" ends in an empty name.
  const fs::path folder = missing.has_filename() ? missing : missing.parent_path();
  std::error_code ignored;
  if (folder.filename() != final_folder || fs::exists(folder, ignored)) return {};
  const fs::path run = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  const auto latest = latest_checkpoint(run);
  if (!latest) return {};
  return str_cat("the run has not ended: its latest checkpoint is ",
                 (folder.parent_path() / latest->path.filename()).string(),
                 ", and it goes on with --resume-from-checkpoint last");
}

}  // namespace onset
