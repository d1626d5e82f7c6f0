// Small runs of onset train on the model "llama", whose rows are token ids.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/program.h"
#include "onset/base/json.h"
#include "support/support.h"

namespace onset::testing {

// Rows of token ids, of which the first two are not trained.
inline std::string id_rows(int count) {
  std::string text;
  for (int row = 0; row < count; ++row) {
    OrderedJson ids = OrderedJson::array();
    OrderedJson labels = OrderedJson::array();
    for (int t = 0; t < 7 + row % 4; ++t) {
      ids.push_back(3 + (row * 37 + t * t * 11) % 200);
      labels.push_back(t > 1 ? ids.back() : OrderedJson(-100));
    }
    text += OrderedJson{{"input_ids", ids}, {"labels", labels}}.dump() + "\n";
  }
  return text;
}

inline std::vector<std::string> sft_arguments(const std::filesystem::path& data,
                                              const std::filesystem::path& output,
                                              const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"train",           "sft",         model_path("llama"),
                                     "--train-file",    data.string(), "--no-check-leaks",
                                     "--learning-rate", "0.001",       "-o",
                                     output.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// The updates' losses and norms, one line each.
inline std::vector<OrderedJson> metrics_of(const std::filesystem::path& output) {
  return read_jsonl(output / "metrics.jsonl");
}

}  // namespace onset::testing
