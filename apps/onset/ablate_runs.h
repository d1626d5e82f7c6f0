// The answers of every run of `onset ablate` as files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ablate_options.h"
#include "onset/eval/ablation_run.h"

namespace onset::app {

// A run's name as part of a file's name.
[[nodiscard]] std::string file_name(const std::string& name);

// Writes the answers of single runs as `onset eval --log-samples` would.
class AblatedRuns {
 public:
  // `time`: as in the files' names. What is given must outlive it.
  AblatedRuns(const AblateOptions& options, const std::string& model,
              const TaskSelection& selection, const std::vector<AblationTask>& tasks,
              std::string time);

  // Into FOLDER/NAME. `answers`: by task, of the first items at least.
  void write(const std::filesystem::path& folder, const std::string& name, const MaskSpec* mask,
             const std::vector<std::vector<ItemAnswer>>& answers) const;

 private:
  const AblateOptions& options_;
  const std::string& model_;
  const TaskSelection& selection_;
  const std::vector<AblationTask>& tasks_;
  std::string time_;
};

}  // namespace onset::app
