#include "onset/train/merge.h"

#include <algorithm>
#include <system_error>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/model/save_model.h"
#include "onset/train/checkpoint_folders.h"
#include "onset/wemask/mask_json.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

constexpr const char* mask_file = "wemask.json";

void refuse_replacing(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (fs::is_directory(folder, error) && fs::is_empty(folder, error)) return;
  throw usage_error(str_cat(folder.string(), ": exists and would be replaced"),
                    "name a folder that is not there yet");
}

MergeReport report_of(const fs::path& folder, const ModelConfig& before) {
  MergeReport report;
  for (const auto& entry : fs::directory_iterator(folder)) {
    report.files.push_back(entry.path().filename().string());
    report.bytes += static_cast<std::int64_t>(entry.file_size());
  }
  std::sort(report.files.begin(), report.files.end());
  const Json config = read_json(folder / "config.json");
  report.untied = before.tied_embeddings && config.value("tie_word_embeddings", Json()) == false;
  return report;
}

}  // namespace

MergeReport merge(const Model& model, const fs::path& folder, const MergeOptions& options) {
  refuse_replacing(folder);
  const OrderedJson key{{"adapter", model.adaptation()},
                        {"wemask", options.mask ? OrderedJson(mask_file) : OrderedJson()}};
  write_folder_atomically(folder, [&](const fs::path& partial) {
    save_model(model, partial, {.dtype = options.dtype, .onset_key = key});
    if (options.mask) {
      write_file_atomically(partial / mask_file, mask_json(*options.mask).dump(1) + "\n");
    }
  });
  return report_of(folder, model.config());
}

}  // namespace onset
