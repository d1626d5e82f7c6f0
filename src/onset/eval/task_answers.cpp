#include "onset/eval/task_answers.h"

#include <iterator>
#include <map>
#include <utility>

namespace onset {
namespace {

void add_counts(EvalCounts& sum, const EvalCounts& more) {
  sum.answered += more.answered;
  sum.reused += more.reused;
  sum.skipped += more.skipped;
  sum.cut += more.cut;
  sum.computed_tokens += more.computed_tokens;
  sum.asked_tokens += more.asked_tokens;
}

}  // namespace

Answers answer_tasks(const Questions& questions, const Model& model, const Tokenizer& tokenizer,
                     const EvalOptions& options, const Log& log) {
  Answers answers;
  answers.by_task.resize(questions.tasks.size());
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> calls;
  for (std::size_t t = 0; t < questions.tasks.size(); ++t) {
    const Task& task = questions.tasks[t];
    const bool is_text = task.kind == ItemKind::text;
    calls[is_text ? std::pair{task.windows.window, task.windows.stride}
                  : std::pair{std::int64_t{0}, std::int64_t{0}}]
        .push_back(t);
  }
  for (const auto& [windows, tasks] : calls) {
    EvalOptions engine = options;
    if (windows.first > 0) {
      engine.windows.window = windows.first;
      engine.windows.stride = windows.second;
    }
    std::vector<EvalItem> items;
    for (const std::size_t t : tasks) {
      const auto& own = questions.items[t].items;
      items.insert(items.end(), own.begin(), own.end());
    }
    auto result = answer_items(model, tokenizer, items, engine, log);
    add_counts(answers.counts, result.counts);
    auto next = result.answers.begin();
    for (const std::size_t t : tasks) {
      const auto count = static_cast<std::ptrdiff_t>(questions.items[t].items.size());
      answers.by_task[t].assign(std::make_move_iterator(next),
                                std::make_move_iterator(next + count));
      next += count;
    }
  }
  return answers;
}

}  // namespace onset
