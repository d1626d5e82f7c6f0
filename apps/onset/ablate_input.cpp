#include "ablate_input.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "onset/base/strings.h"
#include "onset/eval/encoding.h"
#include "onset/massive/sinks.h"
#include "prompts.h"
#include "sample_text.h"

namespace onset::app {
namespace {

constexpr std::int64_t sink_length = 64;
constexpr std::int64_t sink_samples = 16;
// Items of each task whose beginnings tell how much energy a mask takes away, and their tokens.
constexpr std::size_t beginnings_per_task = 8;
constexpr std::size_t beginning_tokens = 16;

// The group that a task counts in: the largest of those selected.
std::string column_name_of(const Task& task, const TaskSelection& selection) {
  const auto holds = [&](const auto& self, const TaskGroup& group) -> bool {
    return std::any_of(group.members.begin(), group.members.end(), [&](const std::string& member) {
      if (member == task.name) return true;
      return std::any_of(
          selection.groups.begin(), selection.groups.end(),
          [&](const TaskGroup& inner) { return inner.name == member && self(self, inner); });
    });
  };
  // Members come before the group that holds them, so the last that holds the task is the largest.
  std::string name = task.name;
  for (const TaskGroup& group : selection.groups) {
    if (holds(holds, group)) name = group.name;
  }
  return name;
}

// A text as long as its first windows: every setting reads it, and hundreds of windows would take
// most of the time. Only about so long, since words at the cut may be split into other tokens.
void shorten(EvalItem& text, std::int64_t tokens, const Tokenizer& tokenizer) {
  auto ids = tokenizer.encode(text.context);
  if (std::ssize(ids) <= tokens) return;
  ids.resize(static_cast<std::size_t>(tokens));
  text.context = valid_utf8(tokenizer.decode(ids));
}

std::vector<std::vector<std::int64_t>> beginnings_of(const std::vector<AblationTask>& tasks,
                                                     const Tokenizer& tokenizer) {
  const ItemEncoder encoder(tokenizer, std::nullopt);
  std::vector<std::vector<std::int64_t>> beginnings;
  for (const auto& task : tasks) {
    for (std::size_t i = 0; i < std::min(task.items.size(), beginnings_per_task); ++i) {
      const EvalItem& item = task.items[i];
      std::vector<std::int64_t> ids;
      if (item.kind == ItemKind::text) {
        ids = encoder.text(item);
        if (encoder.bos()) ids.insert(ids.begin(), *encoder.bos());
      } else {
        ids = item.kind == ItemKind::choice ? encoder.pairs(item).front().context
                                            : encoder.prompt(item);
      }
      if (ids.size() > beginning_tokens) ids.resize(beginning_tokens);
      beginnings.push_back(std::move(ids));
    }
  }
  return beginnings;
}

}  // namespace

std::vector<AblationTask> tasks_of(const AblateOptions& options, const TaskSelection& selection,
                                   const ModelConfig& config, const Tokenizer& tokenizer,
                                   const std::optional<ChatFormat>& chat) {
  const ItemOptions wanted = options.item_options(chat);
  std::vector<AblationTask> tasks;
  for (Task task : selection.tasks) {
    const std::int64_t most = config.context / 2;
    if (most > 0) task.generation.max_new_tokens = std::min(task.generation.max_new_tokens, most);
    TaskItems made = make_items(task, wanted);
    const std::int64_t step = task.windows.stride > 0 ? task.windows.stride : task.windows.window;
    for (EvalItem& item : made.items) {
      if (item.kind == ItemKind::text && options.windows > 0) {
        shorten(item, options.windows * step, tokenizer);
      }
    }
    const auto column = column_name_of(task, selection);
    tasks.push_back({.task = std::move(task),
                     .items = std::move(made.items),
                     .column = column,
                     .documents = made.documents,
                     .fewshot = made.fewshot});
  }
  return tasks;
}

AblationInput input_of(const AblateOptions& options, std::vector<AblationTask> tasks,
                       const Tokenizer& tokenizer) {
  AblationInput input;
  input.beginnings = beginnings_of(tasks, tokenizer);
  input.tasks = std::move(tasks);
  input.engine.batch_tokens = options.batch_tokens;
  input.engine.sampling.seed = static_cast<std::uint64_t>(options.compute.seed);
  input.engine.cache = options.cache;
  if (options.cache.empty() && !options.output.empty()) {
    input.engine.cache = std::filesystem::path(options.output) / "cache";
  }
  const auto text = tokenizer.encode(sample_text());
  const std::vector<std::int64_t> ids(text.begin(), text.end());
  input.sink_samples =
      cut_samples(ids, sink_length, sink_samples, bos_before_text(BosChoice::automatic, tokenizer));
  input.budget = options.budget;
  input.paired = options.paired;
  return input;
}

}  // namespace onset::app
