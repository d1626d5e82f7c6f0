// onset ablate: masks of many kinds against the model as it is, on the same items.

#include <algorithm>
#include <filesystem>
#include <utility>

#include "ablate_report.h"
#include "chats.h"
#include "default_mask.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/eval/ablation_run.h"
#include "onset/eval/encoding.h"
#include "onset/massive/sinks.h"
#include "onset/model/config.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask_json.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "sample_text.h"
#include "task_options.h"
#include "verbs.h"

namespace onset::app {
namespace {

constexpr std::int64_t sink_length = 64;
constexpr std::int64_t sink_samples = 16;
// Items of each task whose beginnings tell how much energy a mask takes away, and their tokens.
constexpr std::size_t beginnings_per_task = 8;
constexpr std::size_t beginning_tokens = 16;

struct AblateOptions : TaskOptions {
  std::int64_t windows = 64;
  std::vector<std::string> criteria;
  std::vector<std::string> rates;
  std::vector<std::string> ks;
  std::vector<std::string> from_layers;
  std::vector<std::string> gammas;
  std::vector<std::string> placements;
  std::vector<std::string> tokens;
  AblationGrid grid;
  std::int64_t seeds = 3;
  std::int64_t budget = 0;
  PairedOptions paired;
  ComputeOptions compute;
  std::int64_t batch_tokens = EvalOptions().batch_tokens;
  std::string cache;
  std::string output;
  bool json = false;
  bool quiet = false;

  void declare(CommandLine& line);
  void resolve();
};

void AblateOptions::declare(CommandLine& line) {
  line.group("Tasks");
  line.texts(tasks, "--tasks", "A,B", "tasks and groups by name; onset eval --list shows them");
  line.texts(task_files, "--task-file", "FILE",
             "a task of your own, docs/tasks.md (repeatable); without --tasks it is run");
  line.path(data, "--data", "DIR", "the folder of the data sets");
  line.integer(limit, "--limit", "N", "only the first N documents of each task; 0: all", 0,
               INT64_MAX);
  line.integer(sample, "--sample", "N",
               "only N documents of each task, drawn with --fewshot-seed; 0: all", 0, INT64_MAX);
  line.integer(windows, "--windows", "N", "the first N windows of each text alone; 0: all", 0,
               INT32_MAX);
  line.integer(fewshot, "--num-fewshot", "N",
               "examples before each question; -1: as many as the task says", -1, 1000);
  line.integer(fewshot_seed, "--fewshot-seed", "N", "by which examples are drawn", 0, INT64_MAX);
  line.toggle(chat, "--chat", "prompts in the model's chat format, examples as turns");
  line.text(system, "--system", "TEXT", "goes before the task's own description");
  line.group("The masks: every combination is run");
  line.texts(criteria, "--criterion", "A,B",
             "weight, activation, magnitude, lowest, random, random_energy; without it weight, "
             "lowest, random and random_energy");
  line.texts(rates, "--rate", "X,Y", "shares of the dims; without it and --k 0.1, 0.25, 0.5, 0.75");
  line.texts(ks, "--k", "N,M", "numbers of dims, in place of rates");
  line.texts(from_layers, "--from-layer", "N,M",
             "first masked layers; without it the one behind the ME layer, which a scan finds");
  line.texts(gammas, "--gamma", "X,Y", "the dims are multiplied by 1 - gamma; without it 1");
  line.texts(placements, "--placement", "A,B", "post_norm, pre_norm; without it post_norm");
  line.texts(tokens, "--token", "A,B", "first, massive; without it first");
  line.integer(seeds, "--seeds", "N", "masks of each random criterion", 1, 1000);
  line.integer(budget, "--budget", "N",
               "ask every setting the first N items of each task, and go on only with those that "
               "are not significantly worse; 0: ask all",
               0, INT64_MAX);
  line.group("Statistics");
  line.number(paired.alpha, "--alpha", "X", "intervals at confidence 1 - X, tests at level X");
  line.integer(paired.resamples, "--resamples", "N",
               "resamples of the bootstrap, and flips of the sign-flip test", 100, 10'000'000);
  compute.residency = Residency::resident;
  compute.declare(line, "of the random masks (plus their number), the bootstrap and the flips");
  line.integer(batch_tokens, "--batch-tokens", "N", "tokens computed in one pass", 1, 1 << 24);
  line.path(cache, "--cache", "DIR",
            "keep answers here and look them up, so that a run that was ended goes on; without it "
            "the folder cache in that of -o");
  line.group("Output");
  line.path(output, "-o,--output", "DIR",
            "write ablation.json, ablation.html and the masks into this folder");
  line.toggle(json, "--json", "JSON in place of the table (fields: docs/ablate.md)");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
  line.example("onset ablate MODEL --tasks piqa,wikitext2 --data DIR -o ablation",
               "four criteria at four rates, with pictures");
  line.example(
      "onset ablate MODEL --tasks arc_challenge --data DIR --criterion weight,random "
      "--rate 0.1,0.25 --seeds 10 --budget 200",
      "ten random masks of each size; what is clearly worse is given up after 200 items");
  line.note("What is compared, and what it cannot say: docs/ablate.md.");
}

template <typename Enum>
Enum named(const std::string& option, const std::string& name, std::initializer_list<Enum> values) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    if (name == name_of(value)) return value;
    names.emplace_back(name_of(value));
  }
  throw usage_error(str_cat(option, ": ", quote(name), " is not one of ", join(names, ", ")));
}

void AblateOptions::resolve() {
  if (!(paired.alpha > 0 && paired.alpha < 1)) {
    throw usage_error(str_cat("--alpha ", shortest(paired.alpha), " is not between 0 and 1"));
  }
  if (!rates.empty() && !ks.empty()) {
    throw usage_error("--rate and --k both say how many dims are masked", "give one of them");
  }
  for (const auto& name :
       parts_of_lists("--criterion", criteria, {"weight", "lowest", "random", "random_energy"})) {
    grid.arms.push_back(parse_arm(name));
  }
  if (ks.empty()) {
    for (const auto& rate : parts_of_lists("--rate", rates, {"0.1", "0.25", "0.5", "0.75"})) {
      grid.rates.push_back(parse_number("--rate", rate));
    }
  }
  for (const auto& k : parts_of_lists("--k", ks)) {
    grid.ks.push_back(parse_integer("--k", k, 1, INT64_MAX));
  }
  for (const auto& layer : parts_of_lists("--from-layer", from_layers)) {
    grid.from_layers.push_back(parse_integer("--from-layer", layer, 0, INT64_MAX));
  }
  for (const auto& gamma : parts_of_lists("--gamma", gammas, {"1"})) {
    grid.gammas.push_back(parse_number("--gamma", gamma));
  }
  for (const auto& name : parts_of_lists("--placement", placements, {"post_norm"})) {
    grid.placements.push_back(
        named("--placement", name, {MaskPlacement::post_norm, MaskPlacement::pre_norm}));
  }
  for (const auto& name : parts_of_lists("--token", tokens, {"first"})) {
    grid.tokens.push_back(named("--token", name, {MaskTokens::first, MaskTokens::massive}));
  }
  grid.seeds = seeds;
  paired.seed = static_cast<std::uint64_t>(compute.seed);
}

// A name as part of a file's name.
std::string file_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (c == ' ' || c == ',') {
      if (!result.empty() && result.back() != '-') result += '-';
    } else {
      result += c;
    }
  }
  return result;
}

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

std::vector<AblationTask> tasks_of(const AblateOptions& options, const Model& model,
                                   const Tokenizer& tokenizer,
                                   const std::optional<ChatFormat>& chat) {
  const TaskLibrary library = options.library();
  const TaskSelection selection =
      options.select("ablate", library, parts_of_lists("--tasks", options.tasks));
  const ItemOptions wanted = options.item_options(chat);
  std::vector<AblationTask> tasks;
  for (Task task : selection.tasks) {
    const std::int64_t most = model.config().context / 2;
    if (most > 0) task.generation.max_new_tokens = std::min(task.generation.max_new_tokens, most);
    auto items = make_items(task, wanted).items;
    const std::int64_t step = task.windows.stride > 0 ? task.windows.stride : task.windows.window;
    for (EvalItem& item : items) {
      if (item.kind == ItemKind::text && options.windows > 0) {
        shorten(item, options.windows * step, tokenizer);
      }
    }
    const auto column = column_name_of(task, selection);
    tasks.push_back({std::move(task), std::move(items), column});
  }
  return tasks;
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

}  // namespace

int run_ablate(const Invocation& invocation) {
  AblateOptions options;
  CommandLine line("ablate", "MODEL --tasks A,B --data DIR [options]",
                   "Scores a model under masks of many kinds, all against the model as it is and "
                   "against random masks, on the same items and paired.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const std::string path = single_model(line, "ablate");
  options.resolve();
  Console console(options.quiet);
  ResultWriter writer("");
  check_grid(options.grid, read_config(Checkpoint::open(path)));
  const std::filesystem::path folder = options.output;
  const OutputFolder made(folder.empty() ? folder : folder / "masks");

  const Tokenizer tokenizer =
      open_tokenizer(path, "tasks are texts: the model needs its tokenizer beside it");
  std::optional<ChatFormat> chat;
  if (options.chat) {
    chat = choose_chat_format("", tokenizer, console.log());
    if (!chat) chat = chat_format_of(tokenizer);
  }
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  const auto model = open_model(path, options.compute, console.log());
  auto input = input_of(options, tasks_of(options, model, tokenizer, chat), tokenizer);
  const bool massive = std::find(options.grid.tokens.begin(), options.grid.tokens.end(),
                                 MaskTokens::massive) != options.grid.tokens.end();
  if (options.grid.from_layers.empty() || massive) {
    const auto found = find_massive(path, model, console.log());
    input.massive_dims = found.massive_dims;
    if (options.grid.from_layers.empty()) {
      if (!found.me_layer) {
        throw usage_error("no ME layer was found, so there is no first layer to mask",
                          "name it with --from-layer");
      }
      options.grid.from_layers.push_back(*found.me_layer + 1);
    }
  }

  std::string condition;
  Log log = console.log();
  log.progress = [&](const std::string& what, std::int64_t done, std::int64_t total) {
    console.progress(condition + what, done, total);
  };
  AblationWatcher watcher;
  watcher.condition = [&](const std::string& name, std::int64_t number, std::int64_t count) {
    condition = str_cat("run ", number + 1, " of ", count, " (", name, "), ");
  };
  if (!options.output.empty()) {
    watcher.mask = [&](const std::string& name, const MaskSpec& mask) {
      write_file_atomically(folder / "masks" / (file_name(name) + ".json"),
                            json_document(mask_json(mask)));
    };
  }
  AblateReport report{
      .path = path, .model = model_json(model), .result = {}, .budget = options.budget};
  report.result = run_ablation(model, tokenizer, options.grid, input, watcher, log);
  console.erase();

  auto run = run_json(invocation);
  add_compute(run, options.compute);
  run["paths"] = {{"model", valid_utf8(path)}, {"data", valid_utf8(options.data)}};
  OrderedJson document{{"run", run}};
  document.update(ablate_json(report));
  if (!options.output.empty()) {
    write_file_atomically(folder / "ablation.json", json_document(document));
    write_file_atomically(folder / "ablation.html", render_page(ablate_page(report, run)));
    console.note(
        str_cat("wrote ablation.json, ablation.html and the masks into ", folder.string()));
  }
  writer.write(options.json ? json_document(document)
                            : ablate_text(report, {.utf8 = utf8_locale(), .colour = false}));
  writer.finish();
  return 0;
}

}  // namespace onset::app
