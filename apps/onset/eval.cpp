// onset eval: how well a model does on tasks, with or without WeMask.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "chats.h"
#include "eval_report.h"
#include "inputs.h"
#include "mask_option.h"
#include "masked.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/ranks.h"
#include "onset/base/sha256.h"
#include "onset/base/strings.h"
#include "onset/eval/engine.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "task_options.h"
#include "verbs.h"

namespace onset::app {
namespace {

struct EvalVerbOptions : TaskOptions {
  bool list = false;
  std::string chat_format;
  bool one_message = false;
  bool no_thinking = false;
  BosChoice bos = BosChoice::automatic;
  std::int64_t max_new_tokens = 0;
  double temperature = 0;
  std::int64_t window = 0;
  std::int64_t stride = -1;
  MaskFileOptions mask;
  ComputeOptions compute;
  std::int64_t batch_tokens = EvalOptions().batch_tokens;
  Overlong overlong = Overlong::truncate;
  std::string cache;
  std::string output;
  bool log_samples = false;
  bool json = false;
  bool quiet = false;

  void declare(CommandLine& line);
  void check() const;
};

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

// What the options say over what the task says.
void adjust(Task& task, const EvalVerbOptions& options, std::int64_t context, Console& console) {
  if (options.max_new_tokens > 0) task.generation.max_new_tokens = options.max_new_tokens;
  if (options.window > 0) task.windows.window = options.window;
  if (options.stride >= 0) task.windows.stride = options.stride;
  const std::int64_t most = context / 2;
  if (task.kind == ItemKind::generation && context > 0 && task.generation.max_new_tokens > most) {
    console.warn(str_cat("task ", task.name, ": answers of at most ", most, " tokens in place of ",
                         task.generation.max_new_tokens,
                         ", half of what the model was trained for"));
    task.generation.max_new_tokens = most;
  }
}

ItemOptions items_of(const EvalVerbOptions& options, const std::optional<ChatFormat>& chat) {
  ItemOptions items = options.item_options(chat);
  items.fewshot_as_turns = !options.one_message;
  if (options.no_thinking) items.enable_thinking = false;
  return items;
}

EvalOptions engine_options(const EvalVerbOptions& options, const std::optional<MaskSpec>& mask) {
  EvalOptions engine;
  if (mask) engine.mask = std::make_shared<const MaskSpec>(*mask);
  if (options.bos != BosChoice::automatic) engine.bos = options.bos == BosChoice::yes;
  engine.batch_tokens = options.batch_tokens;
  engine.overlong = options.overlong;
  engine.sampling.temperature = options.temperature;
  engine.sampling.seed = static_cast<std::uint64_t>(options.compute.seed);
  engine.cache = options.cache;
  return engine;
}

// Progress with the time that the rest will take, as fast as so far.
class ItemProgress {
 public:
  explicit ItemProgress(Console& console) : console_(console) {}

  void operator()(const std::string& what, std::int64_t done, std::int64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!begun_ || done < first_) {
      begun_ = now;
      first_ = done;
    }
    const std::chrono::duration<double> passed = now - *begun_;
    std::string text = what;
    if (done > first_ && total > done && passed.count() > 1) {
      const double left =
          passed.count() / static_cast<double>(done - first_) * static_cast<double>(total - done);
      text = str_cat("about ", duration_text(left), " left, ", what);
    }
    console_.progress(text, done, total);
  }

 private:
  static std::string duration_text(double seconds) {
    const auto whole = std::int64_t{std::llround(seconds)};
    if (whole < 60) return str_cat(whole, " s");
    if (whole < 3600) return str_cat(whole / 60, " min ", whole % 60, " s");
    return str_cat(whole / 3600, " h ", whole % 3600 / 60, " min");
  }

  Console& console_;
  std::optional<std::chrono::steady_clock::time_point> begun_;
  std::int64_t first_ = 0;
};

// Items of all tasks, by task.
struct Questions {
  std::vector<Task> tasks;
  std::vector<TaskItems> items;
};

struct Answers {
  std::vector<std::vector<ItemAnswer>> by_task;
  EvalCounts counts;
};

void add_counts(EvalCounts& sum, const EvalCounts& more) {
  sum.answered += more.answered;
  sum.reused += more.reused;
  sum.skipped += more.skipped;
  sum.cut += more.cut;
  sum.computed_tokens += more.computed_tokens;
  sum.asked_tokens += more.asked_tokens;
}

// All questions in one call, so that their prompts share batches; texts by their windows.
Answers answer_all(const Questions& questions, const Model& model, const Tokenizer& tokenizer,
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

std::string_view dtype_name(Compute compute) {
  switch (compute) {
    case Compute::f32:
      return "float32";
    case Compute::bf16:
      return "bfloat16";
    case Compute::f64:
      return "float64";
  }
  return "";
}

std::string model_name(const std::string& path) {
  auto name = std::filesystem::path(path).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  return valid_utf8(name.filename().string());
}

OrderedJson config_json(const EvalVerbOptions& options, const std::string& path) {
  const auto count_or_null = [](std::int64_t count) {
    return count > 0 ? OrderedJson(count) : OrderedJson(nullptr);
  };
  static const std::map<BosChoice, std::string> bos_names{
      {BosChoice::automatic, "auto"}, {BosChoice::yes, "yes"}, {BosChoice::no, "no"}};
  OrderedJson json{
      {"model", "onset"},
      {"model_args",
       str_cat("pretrained=", valid_utf8(path), ",dtype=", dtype_name(options.compute.compute))},
      {"model_dtype", dtype_name(options.compute.compute)},
      {"device", "cpu"},
      {"batch_size", str_cat(options.batch_tokens, " tokens")},
      {"use_cache",
       options.cache.empty() ? OrderedJson(nullptr) : OrderedJson(valid_utf8(options.cache))},
      {"limit", count_or_null(options.limit)},
      {"sample", count_or_null(options.sample)},
      {"gen_kwargs", options.temperature > 0 ? OrderedJson{{"temperature", options.temperature}}
                                             : OrderedJson(nullptr)},
      {"random_seed", options.compute.seed},
      {"fewshot_seed", options.fewshot_seed},
      {"bos", bos_names.at(options.bos)},
      {"overlong", name_of(options.overlong)},
      {"enable_thinking", options.no_thinking ? OrderedJson(false) : OrderedJson(nullptr)}};
  return json;
}

OrderedJson extra_json(const EvalVerbOptions& options, const std::string& path, const Model& model,
                       const std::optional<ChatFormat>& chat, const EvalCounts& counts,
                       const Ranks& ranks, const Invocation& invocation) {
  auto run = run_json(invocation);
  add_compute(run, options.compute);
  run["engine"] = {{"ranks", ranks.count()},
                   {"answered", counts.answered},
                   {"reused", counts.reused},
                   {"computed_tokens", counts.computed_tokens},
                   {"asked_tokens", counts.asked_tokens}};
  run["paths"] = {{"model", valid_utf8(path)}, {"data", valid_utf8(options.data)}};
  add_mask_path(run, options.mask.path);
  add_adapter_path(run, options.compute);
  const bool has_system = !options.system.empty();
  const std::chrono::duration<double> date = invocation.started.time_since_epoch();
  const auto seconds = run["seconds"];
  return {{"model", model_json(model)},
          {"model_source", "onset"},
          {"model_name", model_name(path)},
          {"model_name_sanitized", model_name(path)},
          {"system_instruction",
           has_system ? OrderedJson(valid_utf8(options.system)) : OrderedJson(nullptr)},
          {"system_instruction_sha",
           has_system ? OrderedJson(sha256(options.system)) : OrderedJson(nullptr)},
          {"fewshot_as_multiturn", chat.has_value() && !options.one_message},
          {"chat_template", chat ? OrderedJson(chat->name) : OrderedJson(nullptr)},
          {"max_length", model.config().context},
          {"git_hash", nullptr},
          {"date", date.count()},
          {"total_evaluation_time_seconds", seconds.dump()},
          {"run", std::move(run)}};
}

void write_files(const EvalVerbOptions& options, std::span<const AnsweredTask> tasks,
                 const OrderedJson& results, const Invocation& invocation, Console& console) {
  if (options.output.empty()) return;
  const std::filesystem::path folder = options.output;
  const std::string time = time_in_names(invocation.started);
  if (options.log_samples) {
    for (const auto& task : tasks) {
      write_file_atomically(
          folder / str_cat("samples_", task.result.task.name, "_", time, ".jsonl"),
          samples_jsonl(task));
    }
  }
  const auto path = folder / str_cat("results_", time, ".json");
  write_file_atomically(path, json_document(results));
  console.note(str_cat("wrote ", path.string(),
                       options.log_samples
                           ? str_cat(" and the samples of ", counted(std::ssize(tasks), "task"))
                           : std::string()));
}

int list_tasks(const TaskLibrary& library, const EvalVerbOptions& options) {
  ResultWriter writer("");
  writer.write(options.json ? json_document(task_list_json(library)) : task_list_text(library));
  writer.finish();
  return 0;
}

std::string header_text(const std::string& path, const Model& model, const EvalVerbOptions& options,
                        const std::optional<MaskSpec>& mask, const std::optional<ChatFormat>& chat,
                        const TextStyle& style) {
  std::string text =
      "model  " +
      wrap(str_cat(printable(path, style.utf8), ": ", model.config().architecture, ", ",
                   model.config().layers.size(), " layers, computed in ",
                   compute_name(options.compute.compute), adapter_words(model.adaptation()),
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
  Questions questions;
  const ItemOptions wanted = items_of(options, chat);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  const auto model = open_model(path, options.compute, console.log());
  const auto mask = mask_for(options.mask, model, console.log());
  for (Task task : selection.tasks) {
    adjust(task, options, model.config().context, console);
    questions.items.push_back(make_items(task, wanted));
    questions.tasks.push_back(std::move(task));
  }

  ItemProgress progress(console);
  Log log = console.log();
  log.progress = [&](const std::string& what, std::int64_t done, std::int64_t total) {
    progress(what, done, total);
  };
  EvalOptions engine = engine_options(options, mask);
  engine.ranks = &ranks;
  auto answers = answer_all(questions, model, tokenizer, engine, log);
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

  ResultFacts facts;
  facts.config = config_json(options, path);
  facts.wemask = wemask_json(mask);
  facts.extra = extra_json(options, path, model, chat, answers.counts, ranks, invocation);
  const auto document = results_json(graded, groups, facts);
  write_files(options, graded, document, invocation, console);
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
