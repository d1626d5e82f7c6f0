// Folders of results in lm-evaluation-harness's layout, written by hand.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "onset/base/file.h"
#include "onset/base/json.h"

namespace onset::testing {

inline const std::string result_time = "2026-01-31T12-00-00.000000";

// A line of a task with choices; `hash` names document and prompt.
inline OrderedJson choice_sample(std::int64_t doc, double acc, const std::string& hash = "") {
  const std::string name = hash.empty() ? std::to_string(doc) : hash;
  return {{"doc_id", doc},
          {"target", "0"},
          {"arguments",
           {{"gen_args_0", {{"arg_0", "Question " + std::to_string(doc)}, {"arg_1", " yes"}}},
            {"gen_args_1", {{"arg_0", "Question " + std::to_string(doc)}, {"arg_1", " no"}}}}},
          {"filtered_resps",
           OrderedJson::array({OrderedJson::array({acc > 0 ? "-1.0" : "-3.0", "True"}),
                               OrderedJson::array({"-2.0", "False"})})},
          {"filter", "none"},
          {"metrics", {"acc"}},
          {"doc_hash", "doc " + name},
          {"prompt_hash", "prompt " + name},
          {"acc", acc}};
}

inline void write_samples(const std::filesystem::path& folder, const std::string& task,
                          const std::vector<OrderedJson>& lines,
                          const std::string& time = result_time) {
  std::filesystem::create_directories(folder);
  std::string text;
  for (const auto& line : lines) text += line.dump() + "\n";
  write_file_atomically(folder / ("samples_" + task + "_" + time + ".jsonl"), text);
}

inline void write_results(const std::filesystem::path& folder, const OrderedJson& results,
                          const std::string& time = result_time) {
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / ("results_" + time + ".json"), results.dump());
}

// One line for each letter: 'r' right, 'w' wrong.
inline std::vector<OrderedJson> choice_samples(const std::string& letters) {
  std::vector<OrderedJson> lines;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    lines.push_back(choice_sample(static_cast<std::int64_t>(i), letters[i] == 'r' ? 1.0 : 0.0));
  }
  return lines;
}

}  // namespace onset::testing
