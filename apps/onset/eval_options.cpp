#include "eval_options.h"

#include <memory>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset::app {

void EvalVerbOptions::declare(CommandLine& line) {
  line.group("Tasks");
  line.texts(tasks, "--tasks", "A,B", "tasks and groups of tasks by name (repeatable); see --list");
  line.texts(task_files, "--task-file", "FILE",
             "a task of your own, docs/tasks.md (repeatable); without --tasks it is run");
  line.toggle(list, "--list", "the tasks that there are, and the data they need");
  line.path(data, "--data", "DIR", "the folder of the data sets");
  line.integer(limit, "--limit", "N", "only the first N documents of each task; 0: all", 0,
               INT64_MAX);
  line.integer(sample, "--sample", "N",
               "only N documents of each task, drawn with --fewshot-seed; 0: all", 0, INT64_MAX);
  line.group("Prompts");
  line.integer(fewshot, "--num-fewshot", "N",
               "examples before each question; -1: as many as the task says", -1, 1000);
  line.integer(fewshot_seed, "--fewshot-seed", "N", "by which examples are drawn", 0, INT64_MAX);
  line.toggle(chat, "--chat", "prompts in the model's chat format, examples as turns");
  line.text(chat_format, "--chat-format", "NAME",
            "chat format to use in place of the model's own: " + chat_format_names());
  line.text(system, "--system", "TEXT", "goes before the task's own description");
  line.toggle(one_message, "--one-message",
              "with --chat: examples and question as one message of the user");
  line.toggle(no_thinking, "--no-thinking",
              "with --chat: formats that know thinking are told to leave it out");
  line.choice(bos, "--bos",
              {{"auto", BosChoice::automatic}, {"yes", BosChoice::yes}, {"no", BosChoice::no}},
              "put the BOS token before each prompt: as the tokenizer's configuration says, "
              "always, or never; it is never doubled");
  line.integer(max_new_tokens, "--max-new-tokens", "N",
               "the longest answer in tokens; 0: as the task says", 0, INT32_MAX);
  line.number(temperature, "--temperature", "T", "of answers; 0 takes the most likely token");
  line.integer(window, "--window", "N", "tokens of a window of text; 0: as the task says", 0,
               INT32_MAX);
  line.integer(stride, "--stride", "N",
               "new tokens in each window, 0 for as many as it holds; -1: as the task says", -1,
               INT32_MAX);
  mask.declare(line);
  compute.residency = Residency::resident;
  compute.declare(line, "what draws of answers go by where --temperature is not 0");
  line.integer(batch_tokens, "--batch-tokens", "N", "tokens computed in one pass", 1, 1 << 24);
  line.choice(
      overlong, "--overlong",
      {{"truncate", Overlong::truncate}, {"skip", Overlong::skip}, {"error", Overlong::error}},
      "an item that is longer than the model's context loses its beginning, is left out, or "
      "ends the run");
  line.path(cache, "--cache", "DIR",
            "keep answers here and look them up: a run that was ended goes on, and equal items are "
            "not computed again");
  line.group("Output");
  line.path(output, "-o,--output", "DIR",
            "write results_TIME.json into this folder (layout of lm-evaluation-harness)");
  line.toggle(log_samples, "--log-samples",
              "write every document with its answer too, samples_TASK_TIME.jsonl; onset compare "
              "needs them");
  line.toggle(json, "--json", "the content of results_TIME.json in place of the table");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
  line.other_name("--num_fewshot", "--num-fewshot");
  line.other_name("--log_samples", "--log-samples");
  line.other_name("--output_path", "--output");
  line.other_name("--apply_chat_template", "--chat");
  line.other_name("--system_instruction", "--system");
  line.other_name("--use_cache", "--cache");
  line.example("onset eval --list", "the tasks");
  line.example("mpirun -n 4 onset eval MODEL --tasks mmlu --data DIR",
               "four processes share the items");
  line.example("onset eval MODEL --tasks piqa,arc_challenge --data DIR", "scores with errors");
  line.example(
      "onset eval MODEL --tasks mmlu --data DIR --wemask wemask.json -o masked --log-samples",
      "under a mask; compare it with a run without: onset compare plain masked");
  line.note(
      "Prompts, log-likelihoods and scores are those of lm-evaluation-harness 0.4 on the same "
      "documents. docs/eval.md says what the numbers mean, docs/tasks.md how to write a task.");
}

void EvalVerbOptions::check() const {
  mask.check();
  if (!chat) {
    for (const auto& [given, name] :
         {std::pair{!chat_format.empty(), "--chat-format"}, std::pair{one_message, "--one-message"},
          std::pair{no_thinking, "--no-thinking"}}) {
      if (given) throw usage_error(str_cat(name, " is about chats"), "add --chat");
    }
  }
  if (limit > 0 && sample > 0) {
    throw usage_error("--limit and --sample both choose documents", "give one of them");
  }
  if (log_samples && output.empty()) {
    throw usage_error("--log-samples writes files, and no folder is named", "add -o DIR");
  }
}

void EvalVerbOptions::adjust(Task& task, std::int64_t context, Console& console) const {
  if (max_new_tokens > 0) task.generation.max_new_tokens = max_new_tokens;
  if (window > 0) task.windows.window = window;
  if (stride >= 0) task.windows.stride = stride;
  const std::int64_t most = context / 2;
  if (task.kind == ItemKind::generation && context > 0 && task.generation.max_new_tokens > most) {
    console.warn(str_cat("task ", task.name, ": answers of at most ", most, " tokens in place of ",
                         task.generation.max_new_tokens,
                         ", half of what the model was trained for"));
    task.generation.max_new_tokens = most;
  }
}

ItemOptions EvalVerbOptions::items_of(const std::optional<ChatFormat>& format) const {
  ItemOptions items = item_options(format);
  items.fewshot_as_turns = !one_message;
  if (no_thinking) items.enable_thinking = false;
  return items;
}

EvalOptions EvalVerbOptions::engine_options(const std::optional<MaskSpec>& spec) const {
  EvalOptions engine;
  if (spec) engine.mask = std::make_shared<const MaskSpec>(*spec);
  if (bos != BosChoice::automatic) engine.bos = bos == BosChoice::yes;
  engine.batch_tokens = batch_tokens;
  engine.overlong = overlong;
  engine.sampling.temperature = temperature;
  engine.sampling.seed = static_cast<std::uint64_t>(compute.seed);
  engine.cache = cache;
  return engine;
}

}  // namespace onset::app
