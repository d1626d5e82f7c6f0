// From a task and its data to the items that the engine answers. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "onset/eval/item.h"
#include "onset/eval/task.h"
#include "onset/tokenizer/chat.h"

namespace onset {

struct ItemOptions {
  std::filesystem::path data;                // the folder that task files' paths begin at
  std::optional<std::int64_t> fewshot = {};  // examples; not given: as many as the task says
  std::optional<std::int64_t> limit = {};    // the first documents alone
  std::optional<std::int64_t> sample = {};   // so many documents, drawn with the seed, in order
  std::uint64_t seed = 1234;                 // of the examples and of `sample`
  std::optional<ChatFormat> chat = {};       // prompts as a chat in this format
  std::string system = {};                   // goes before the task's own description
  bool fewshot_as_turns = true;              // examples as turns of the chat, or in one message
  std::optional<bool> enable_thinking = {};  // of formats that read it
};

struct TaskItems {
  std::vector<EvalItem> items;
  std::int64_t documents = 0;  // of the task, whatever the limit
  std::int64_t fewshot = 0;
};

// Items in the order of the data. The context is what lm-evaluation-harness 0.4 makes of the same
// parts: system text and description, the examples with question, delimiter and answer, the
// question. Throws input errors that name file and line, and usage errors where examples or
// documents are asked for that the task does not have.
[[nodiscard]] TaskItems make_items(const Task& task, const ItemOptions& options);

}  // namespace onset
