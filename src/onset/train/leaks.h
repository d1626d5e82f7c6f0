// Whether what a model is trained on holds what it will be asked: items of known tasks in training
// data. Torch-free.
//
// White space and upper case aside, a text of the training data leaks an item when it is the item's
// question, or holds it (a question of 8 words or more; shorter ones occur in other texts by
// chance). Every text of a row is looked at: prompts, messages, completions, also columns that are
// not trained on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onset/base/json.h"
#include "onset/eval/task.h"

namespace onset {

struct LeakedItem {
  std::string task;
  std::int64_t item = 0;  // the row of the task's data, from 0
  std::int64_t row = 0;   // the first row of the training data that has it, from 0
  std::string question;
};

struct LeakReport {
  std::int64_t rows = 0;                         // of the training data
  std::int64_t leaking = 0;                      // of them
  std::vector<LeakedItem> items;                 // each once, in the order they were found
  std::map<std::string, std::int64_t> compared;  // items by task
  std::vector<std::string> skipped;              // tasks whose data are not at hand

  // A paragraph for people. It warns where something leaks, and names what was not compared.
  [[nodiscard]] std::string text() const;
};

// The questions of tasks.
class LeakIndex {
 public:
  // Of choice and generation tasks; those of texts (perplexity) have no questions. A task whose
  // data cannot be read in this folder is skipped.
  LeakIndex(std::span<const Task> tasks, const std::filesystem::path& data);

  // Looks at all texts in the row.
  void check(const OrderedJson& row, LeakReport& report) const;
  // What was indexed.
  [[nodiscard]] LeakReport report() const;

 private:
  struct Question {
    std::string task;
    std::int64_t item = 0;
    std::string text;  // as it is
    std::string form;  // as it is compared
  };
  using Places = std::unordered_multimap<std::size_t, std::size_t>;  // hash to question

  void add(Question question);
  void find_in(std::string_view text, std::vector<std::size_t>& found) const;

  std::vector<Question> questions_;
  Places whole_;      // of the form
  Places beginning_;  // of its first words
  std::map<std::string, std::int64_t> compared_;
  std::vector<std::string> skipped_;
};

// Of a file of training data, its first `limit` rows (0: all), against all tasks that the program
// knows. Throws input errors where the file cannot be read.
[[nodiscard]] LeakReport find_leaks(const std::filesystem::path& file, std::int64_t limit,
                                    const std::filesystem::path& task_data);

}  // namespace onset
