// onset eval: how well a model does on tasks, with or without WeMask.

#include <utility>

#include "chats.h"
#include "eval_options.h"
#include "eval_report.h"
#include "inputs.h"
#include "item_progress.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/ranks.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/eval/task_answers.h"
#include "onset/model/config.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "output.h"
#include "prompts.h"
#include "verbs.h"

namespace onset::app {
namespace {

int list_tasks(const TaskLibrary& library, const EvalVerbOptions& options) {
  ResultWriter writer("");
  writer.write(options.json ? json_document(task_list_json(library)) : task_list_text(library));
  writer.finish();
  return 0;
}

std::string header_text(const std::string& path, const Model& model, const EvalVerbOptions& options,
                        const std::optional<MaskSpec>& mask, const std::optional<ChatFormat>& chat,
                        const TextStyle& style) {
  std::string text = "model  " +
                     wrap(str_cat(printable(path, style.utf8), ": ", model.config().architecture,
                                  ", ", model.config().layers.size(), " layers, computed in ",
                                  compute_words(options.compute), adapter_words(model.adaptation()),
                                  chat ? str_cat(", chat format ", chat->name) : std::string()),
                          80, 7) +
                     "\n";
  text += "mask   " + wrap(mask ? mask_words(*mask) : "none", 80, 7) + "\n\n";
  return text;
}

}  // namespace

int run_eval(const Invocation& invocation) {
  EvalVerbOptions options;
  CommandLine line("eval", "MODEL --tasks A,B --data DIR [options]",
                   "How well a model does on tasks, as it is or under a mask.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const TaskLibrary library = options.library();
  if (options.list) return list_tasks(library, options);
  const std::string path = single_model(line, "eval");
  options.check();
  const TaskSelection selection =
      options.select("eval", library, parts_of_lists("--tasks", options.tasks));
  const Ranks ranks = Ranks::join();
  Console console(options.quiet || !ranks.is_first());
  ResultWriter writer("");
  const OutputFolder folder(options.output);

  const Tokenizer tokenizer =
      open_tokenizer(path, "tasks are texts: the model needs its tokenizer beside it");
  std::optional<ChatFormat> chat;
  if (options.chat) {
    chat = choose_chat_format(options.chat_format, tokenizer, console.log());
    if (!chat) chat = chat_format_of(tokenizer);
  }
  // Data that are missing are said before the weights are read.
  Questions questions;
  const ItemOptions wanted = options.items_of(chat);
  const std::int64_t context = read_config(Checkpoint::open(path)).context;
  for (Task task : selection.tasks) {
    options.adjust(task, context, console);
    questions.items.push_back(make_items(task, wanted));
    questions.tasks.push_back(std::move(task));
  }
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  const auto model = open_model(path, options.compute, console.log());
  const auto mask = mask_for(options.mask, model, console.log(), options.compute.adapter);

  ItemProgress progress(console);
  Log log = console.log();
  log.progress = [&](const std::string& what, std::int64_t done, std::int64_t total) {
    progress(what, done, total);
  };
  EvalOptions engine = options.engine_options(mask);
  engine.ranks = &ranks;
  auto answers = answer_tasks(questions, model, tokenizer, engine, log);
  console.erase();
  if (!ranks.is_first()) return 0;
  std::vector<AnsweredTask> graded;
  std::vector<TaskResult> results;
  for (std::size_t t = 0; t < questions.tasks.size(); ++t) {
    auto& made = questions.items[t];
    graded.push_back(
        grade(questions.tasks[t], std::move(made.items), std::move(answers.by_task[t])));
    graded.back().result.documents = made.documents;
    graded.back().result.fewshot = made.fewshot;
    results.push_back(graded.back().result);
  }
  const auto groups = aggregate_groups(selection.groups, results);

  const auto document =
      results_json(graded, groups,
                   eval_facts(options, path, model, mask, chat, answers.counts, ranks, invocation));
  if (!options.output.empty()) {
    const auto written = write_results(options.output, time_in_names(invocation.started), graded,
                                       document, options.log_samples);
    const auto count = counted(std::ssize(graded), "task");
    console.note(str_cat("wrote ", written.string(),
                         options.log_samples ? " and the samples of " + count : std::string()));
  }
  const TextStyle style{.utf8 = utf8_locale(), .colour = false};
  if (options.json) {
    writer.write(json_document(document));
  } else {
    writer.write(header_text(path, model, options, mask, chat, style));
    writer.write(scores_text(graded, groups, style));
    const auto remarks = remarks_text(graded);
    if (!remarks.empty()) writer.write("\n" + remarks);
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
