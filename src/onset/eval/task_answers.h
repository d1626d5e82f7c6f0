// The items of several tasks, answered together. Torch-free.
#pragma once

#include <vector>

#include "onset/eval/engine.h"
#include "onset/eval/task_items.h"

namespace onset {

// Items of all tasks, by task.
struct Questions {
  std::vector<Task> tasks;
  std::vector<TaskItems> items;
};

struct Answers {
  std::vector<std::vector<ItemAnswer>> by_task;
  EvalCounts counts;
};

// All questions in one call of answer_items(), so that their prompts share batches; texts by their
// windows, those of the tasks.
[[nodiscard]] Answers answer_tasks(const Questions& questions, const Model& model,
                                   const Tokenizer& tokenizer, const EvalOptions& options,
                                   const Log& log = {});

}  // namespace onset
