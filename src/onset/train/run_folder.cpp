#include "onset/train/run_folder.h"

#include "onset/base/error.h"
#include "onset/checkpoint/run_checkpoints.h"
#include "onset/model/config.h"
#include "onset/train/settings_toml.h"

namespace onset {

std::optional<std::filesystem::path> resumed_checkpoint(const TrainerSettings& settings) {
  if (settings.resume_from_checkpoint.empty()) return std::nullopt;
  if (settings.resume_from_checkpoint != "last") {
    require_input(std::filesystem::is_directory(settings.resume_from_checkpoint),
                  settings.resume_from_checkpoint, ": there is no such checkpoint");
    return settings.resume_from_checkpoint;
  }
  const auto latest = latest_checkpoint(settings.output_dir);
  if (!latest) {
    throw input_error(str_cat(settings.output_dir, ": holds no checkpoint to go on from"),
                      "leave resume_from_checkpoint out; a run that is there has to be deleted");
  }
  return latest->path;
}

void require_folder(const std::filesystem::path& output) {
  std::error_code ignored;
  std::filesystem::path there = output;
  while (there.has_relative_path() && !std::filesystem::exists(there, ignored)) {
    there = there.parent_path();
  }
  if (!std::filesystem::exists(there, ignored) || std::filesystem::is_directory(there, ignored)) {
    return;
  }
  const std::string what = there == output
                               ? "is a file, and a run needs a folder"
                               : str_cat("cannot be made: ", there.string(), " is a file");
  throw usage_error(str_cat(output.string(), ": ", what), "give another -o");
}

void refuse_another_run(const std::filesystem::path& output) {
  // A run that failed in its first update has left no line and no checkpoint: nothing is lost.
  std::error_code absent;
  const auto bytes = std::filesystem::file_size(output / "metrics.jsonl", absent);
  const bool has_lines = !absent && bytes > 0;
  const bool has_checkpoints = !list_checkpoints(output).empty();
  if (!has_lines && !has_checkpoints && !std::filesystem::exists(output / final_folder)) return;
  throw input_error(
      str_cat(output.string(), ": holds another run"),
      !has_checkpoints
          ? "it has no checkpoint to go on from: delete it, or give another folder"
          : "go on with it (resume_from_checkpoint = \"last\"), or give another folder");
}

OrderedJson identity_of(const TrainSettings& settings, const ModelConfig& config,
                        const std::string& data, std::int64_t steps, const Ranks& ranks) {
  return {{"method", name_of(settings.method)},
          {"model",
           {{"architecture", config.architecture},
            {"layers", config.layer_count()},
            {"hidden", config.hidden},
            {"vocabulary", config.vocabulary}}},
          {"data", data},
          {"settings", curve_settings(settings)},
          {"steps", steps},
          {"ranks", ranks.count()}};
}

}  // namespace onset
