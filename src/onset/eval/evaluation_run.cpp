#include "onset/eval/evaluation_run.h"

#include <algorithm>
#include <set>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view samples_prefix = "samples_";
constexpr std::string_view samples_ending = ".jsonl";
constexpr std::string_view results_prefix = "results_";
constexpr std::string_view results_ending = ".json";
constexpr std::string_view looked_for = "results_TIME.json and samples_TASK_TIME.jsonl";

bool has_form(const std::string& name, std::string_view prefix, std::string_view ending) {
  return name.size() > prefix.size() + ending.size() && name.starts_with(prefix) &&
         name.ends_with(ending);
}

std::string middle(const std::string& name, std::string_view prefix, std::string_view ending) {
  return name.substr(prefix.size(), name.size() - prefix.size() - ending.size());
}

// Does a time such as 2026-01-31T12-00-00.123 begin at `at`, so far as its first ten bytes tell?
bool is_date(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  if (text.size() < form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !digit : text[i] != form[i]) return false;
  }
  return true;
}

// "arc_easy_2026-01-31T12-00-00" as {"arc_easy", "2026-01-31T12-00-00"}; the time may be missing.
std::pair<std::string, std::string> task_and_time(const std::string& text,
                                                  const std::set<std::string>& times) {
  for (const std::string& time : times) {
    if (text.size() > time.size() + 1 && text.ends_with("_" + time)) {
      return {text.substr(0, text.size() - time.size() - 1), time};
    }
  }
  for (std::size_t at = text.find('_'); at != std::string::npos; at = text.find('_', at + 1)) {
    if (is_date(std::string_view(text).substr(at + 1))) {
      return {text.substr(0, at), text.substr(at + 1)};
    }
  }
  return {text, ""};
}

// The runs in one folder, by time.
std::map<std::string, RunFiles> runs_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::map<std::string, RunFiles> runs;
  std::set<std::string> times;
  for (const fs::path& path : paths) {
    const std::string name = path.filename().string();
    if (!has_form(name, results_prefix, results_ending)) continue;
    const std::string time = middle(name, results_prefix, results_ending);
    times.insert(time);
    runs[time].results = path;
  }
  for (const fs::path& path : paths) {
    const std::string name = path.filename().string();
    if (!has_form(name, samples_prefix, samples_ending)) continue;
    const auto [task, time] = task_and_time(middle(name, samples_prefix, samples_ending), times);
    runs[time].samples.push_back({task, path});
  }
  return runs;
}

// The latest run that has samples.
RunFiles latest(const std::map<std::string, RunFiles>& runs, const fs::path& folder) {
  std::vector<std::string> times;
  for (const auto& [time, run] : runs) {
    if (!run.samples.empty()) times.push_back(time);
  }
  if (times.empty()) {
    throw input_error(str_cat(folder.string(),
                              ": has results but no samples_*.jsonl, and a "
                              "comparison goes by the single answers"),
                      "run the evaluation with --log-samples (lm-eval: --log_samples too)");
  }
  RunFiles run = runs.at(times.back());
  if (times.size() > 1) {
    run.notes.push_back(str_cat(folder.string(), " holds ", times.size(), " runs; the latest, ",
                                times.back(),
                                ", is taken (name a results_*.json to take another)"));
  }
  return run;
}

RunFiles run_of_folder(const fs::path& folder) {
  const auto here = runs_in(folder);
  if (!here.empty()) return latest(here, folder);
  std::vector<fs::path> inner;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !runs_in(entry.path()).empty()) inner.push_back(entry.path());
  }
  std::sort(inner.begin(), inner.end());
  if (inner.empty()) {
    throw input_error(str_cat(folder.string(), ": no ", looked_for, " in it or in its folders"),
                      "give what the evaluation was told with -o (lm-eval: --output_path)");
  }
  if (inner.size() > 1) {
    std::vector<std::string> names;
    names.reserve(inner.size());
    for (const auto& path : inner) names.push_back(path.string());
    throw input_error(
        str_cat(folder.string(), ": several folders in it hold runs: ", join(names, ", ")),
        "give one of them");
  }
  return latest(runs_in(inner.front()), inner.front());
}

RunFiles run_of_file(const fs::path& path) {
  const std::string name = path.filename().string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const auto runs = runs_in(folder);
  if (has_form(name, results_prefix, results_ending)) {
    const auto found = runs.find(middle(name, results_prefix, results_ending));
    if (found == runs.end() || found->second.samples.empty()) {
      throw input_error(str_cat(path.string(), ": no samples_*.jsonl of the same time beside it"),
                        "run the evaluation with --log-samples");
    }
    return found->second;
  }
  if (has_form(name, samples_prefix, samples_ending)) {
    for (const auto& [time, run] : runs) {
      for (const auto& samples : run.samples) {
        if (samples.path.filename() != path.filename()) continue;
        RunFiles single;
        single.results = run.results;
        single.samples = {samples};
        return single;
      }
    }
  }
  throw input_error(str_cat(path.string(), ": is neither a folder nor named like ", looked_for));
}

void expand(const std::map<std::string, std::vector<std::string>>& members, const std::string& name,
            std::set<std::string>& visited, std::vector<std::string>& tasks) {
  if (!visited.insert(name).second) return;
  const auto found = members.find(name);
  if (found == members.end() || found->second.empty()) {
    tasks.push_back(name);
    return;
  }
  for (const std::string& member : found->second) expand(members, member, visited, tasks);
}

// Of `config`: what changes no score by intention.
bool is_setting(const std::string& name) {
  static const std::set<std::string> others{"batch_size",      "batch_sizes",
                                            "use_cache",       "device",
                                            "bootstrap_iters", "model_num_parameters"};
  return others.count(name) == 0;
}

void compare_member(const Json& a, const Json& b, const std::string& name,
                    std::vector<SettingDifference>& differences) {
  const auto value = [&](const Json& results) {
    return results.is_object() && results.contains(name) ? results.at(name) : Json();
  };
  Json value_a = value(a);
  Json value_b = value(b);
  if (value_a != value_b) {
    differences.push_back({name, std::move(value_a), std::move(value_b)});
  }
}

// What would be passed over without a word if it were something else.
void check_shape(const Json& results, const std::string& where) {
  for (const char* name :
       {"results", "groups", "configs", "config", "versions", "n-shot", "higher_is_better"}) {
    const auto found = results.find(name);
    if (found == results.end() || found->is_null()) continue;
    require_input(found->is_object(), where, ": ", quote(name), " should be an object, is ",
                  found->type_name());
  }
  const auto groups = results.find("group_subtasks");
  if (groups == results.end() || groups->is_null()) return;
  require_input(groups->is_object(), where, ": \"group_subtasks\" should be an object, is ",
                groups->type_name());
  for (const auto& [name, members] : groups->items()) {
    const bool is_list =
        members.is_array() && std::all_of(members.begin(), members.end(),
                                          [](const Json& member) { return member.is_string(); });
    require_input(is_list, where, ": the group ", quote(name), " should be a list of names");
    require_input(std::find(members.begin(), members.end(), name) == members.end(), where,
                  ": the group ", quote(name), " holds itself");
  }
}

const Json& object_at(const Json& results, const std::string& name) {
  static const Json none = Json::object();
  if (!results.is_object()) return none;
  const auto found = results.find(name);
  return found != results.end() && found->is_object() ? *found : none;
}

}  // namespace

RunFiles find_run(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  require_input(fs::exists(status), path.string(), ": no such file or folder");
  RunFiles run = fs::is_directory(status) ? run_of_folder(path) : run_of_file(path);
  run.given = path.string();
  std::stable_sort(run.samples.begin(), run.samples.end(),
                   [](const auto& a, const auto& b) { return a.task < b.task; });
  return run;
}

const SamplesFile* EvaluationRun::find_task(const std::string& name) const {
  const auto found = std::find_if(tasks.begin(), tasks.end(),
                                  [&](const SamplesFile& file) { return file.task == name; });
  return found == tasks.end() ? nullptr : &*found;
}

EvaluationRun open_run(const fs::path& path) {
  EvaluationRun run{.files = find_run(path), .results = {}, .tasks = {}};
  if (!run.files.results.empty()) {
    const std::string name = run.files.results.string();
    run.results = parse_python_json(read_file(run.files.results), name);
    require_input(run.results.is_object(), name, ": results should be an object, are ",
                  run.results.type_name());
    check_shape(run.results, name);
  }
  return run;
}

void read_tasks(EvaluationRun& run, const std::function<bool(const std::string& task)>& wanted) {
  for (const auto& samples : run.files.samples) {
    if (wanted(samples.task)) run.tasks.push_back(read_samples(samples.path, samples.task));
  }
}

std::map<std::string, std::vector<std::string>> groups_of(const Json& results) {
  std::map<std::string, std::vector<std::string>> members;
  for (const auto& [name, list] : object_at(results, "group_subtasks").items()) {
    if (!list.is_array()) continue;
    for (const Json& member : list) {
      if (member.is_string()) members[name].push_back(member.get<std::string>());
    }
  }
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& [name, list] : members) {
    std::set<std::string> visited;
    std::vector<std::string> tasks;
    expand(members, name, visited, tasks);
    std::sort(tasks.begin(), tasks.end());
    groups[name] = std::move(tasks);
  }
  return groups;
}

std::optional<bool> higher_is_better(const Json& results, const std::string& task,
                                     const std::string& metric) {
  const Json& metrics = object_at(object_at(results, "higher_is_better"), task);
  const auto found = metrics.find(metric);
  if (found == metrics.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

std::vector<SettingDifference> setting_differences(const Json& a, const Json& b) {
  std::vector<SettingDifference> differences;
  for (const char* name : {"model_name", "model_source", "wemask", "system_instruction",
                           "fewshot_as_multiturn", "chat_template_sha", "max_length"}) {
    compare_member(a, b, name, differences);
  }
  const auto compare_members = [&](const std::string& name, bool only_common) {
    const Json& in_a = object_at(a, name);
    const Json& in_b = object_at(b, name);
    std::set<std::string> keys;
    for (const auto& [key, value] : in_a.items()) keys.insert(key);
    for (const auto& [key, value] : in_b.items()) keys.insert(key);
    std::vector<SettingDifference> found;
    for (const std::string& key : keys) {
      if (only_common && !(in_a.contains(key) && in_b.contains(key))) continue;
      if (only_common || is_setting(key)) compare_member(in_a, in_b, key, found);
    }
    for (auto& difference : found) {
      difference.name = name + "." + difference.name;
      differences.push_back(std::move(difference));
    }
  };
  compare_members("config", false);
  compare_members("n-shot", true);
  compare_members("versions", true);
  return differences;
}

}  // namespace onset
