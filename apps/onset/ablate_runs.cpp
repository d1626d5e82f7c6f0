#include "ablate_runs.h"

#include <utility>

#include "eval_report.h"
#include "masked.h"
#include "onset/base/strings.h"
#include "output.h"

namespace onset::app {

std::string file_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (c == ' ' || c == ',') {
      if (!result.empty() && result.back() != '-') result += '-';
    } else {
      result += c;
    }
  }
  return result;
}

AblatedRuns::AblatedRuns(const AblateOptions& options, const std::string& model,
                         const TaskSelection& selection, const std::vector<AblationTask>& tasks,
                         std::string time)
    : options_(options),
      model_(model),
      selection_(selection),
      tasks_(tasks),
      time_(std::move(time)) {}

void AblatedRuns::write(const std::filesystem::path& folder, const std::string& name,
                        const MaskSpec* mask,
                        const std::vector<std::vector<ItemAnswer>>& answers) const {
  std::vector<AnsweredTask> graded;
  std::vector<TaskResult> results;
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    const AblationTask& task = tasks_[t];
    const auto asked = static_cast<std::ptrdiff_t>(answers[t].size());
    graded.push_back(
        grade(task.task, {task.items.begin(), task.items.begin() + asked}, answers[t]));
    graded.back().result.documents = task.documents;
    graded.back().result.fewshot = task.fewshot;
    results.push_back(graded.back().result);
  }
  const auto groups = aggregate_groups(selection_.groups, results);
  OrderedJson extra{{"model_source", "onset"}, {"model_name", results_model_name(model_)}};
  extra["system_instruction"] =
      options_.system.empty() ? OrderedJson(nullptr) : OrderedJson(valid_utf8(options_.system));
  extra["run"] = {{"setting", name}};
  const ResultFacts facts{
      .config = results_config(options_, options_.compute, model_),
      .wemask = wemask_json(mask == nullptr ? std::optional<MaskSpec>() : std::optional(*mask)),
      .extra = extra};
  const std::filesystem::path own = folder / file_name(name);
  std::filesystem::create_directories(own);
  write_results(own, time_, graded, results_json(graded, groups, facts), true);
}

}  // namespace onset::app
