// onset ablate: masks of many kinds against the model as it is, on the same items.

#include <algorithm>
#include <filesystem>
#include <utility>

#include "ablate_input.h"
#include "ablate_options.h"
#include "ablate_report.h"
#include "ablate_runs.h"
#include "chats.h"
#include "default_mask.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/ranks.h"
#include "onset/base/strings.h"
#include "onset/checkpoint/checkpoint.h"
#include "onset/eval/results.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/wemask/mask_json.h"
#include "output.h"
#include "prompts.h"
#include "verbs.h"

namespace onset::app {
namespace {

// What the first of the ranks found, so that all mask the same layers.
FoundMassive found_by_first(const Ranks& ranks, const FoundMassive& found) {
  if (ranks.count() == 1) return found;
  const OrderedJson mine{
      {"me_layer", found.me_layer ? OrderedJson(*found.me_layer) : OrderedJson(nullptr)},
      {"massive_dims", found.massive_dims}};
  const Json first = parse_json(ranks.gather(mine.dump()).front(), "the scan of a rank");
  FoundMassive result;
  if (!first.at("me_layer").is_null()) result.me_layer = first.at("me_layer").get<std::int64_t>();
  result.massive_dims = first.at("massive_dims").get<std::vector<std::int64_t>>();
  return result;
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
  const TaskLibrary library = options.library();
  const TaskSelection selection =
      options.select("ablate", library, parts_of_lists("--tasks", options.tasks));
  const Ranks ranks = Ranks::join();
  Console console(options.quiet || !ranks.is_first());
  ResultWriter writer("");
  const ModelConfig config = read_config(Checkpoint::open(path));
  check_grid(options.grid, config);
  const std::filesystem::path folder = options.output;
  const OutputFolder made(folder.empty() ? folder : folder / "masks");

  const Tokenizer tokenizer =
      open_tokenizer(path, "tasks are texts: the model needs its tokenizer beside it");
  std::optional<ChatFormat> chat;
  if (options.chat) {
    chat = choose_chat_format("", tokenizer, console.log());
    if (!chat) chat = chat_format_of(tokenizer);
  }
  // Data that are missing are said before the weights are read.
  auto input = input_of(options, tasks_of(options, selection, config, tokenizer, chat), tokenizer);
  input.engine.ranks = &ranks;
  spin_briefly();
  keep_freed_memory();
  set_threads(options.compute.thread_count());
  const auto model = open_model(path, options.compute, console.log());
  const bool massive = std::find(options.grid.tokens.begin(), options.grid.tokens.end(),
                                 MaskTokens::massive) != options.grid.tokens.end();
  if (options.grid.from_layers.empty() || massive) {
    const auto found = found_by_first(ranks, find_massive(path, model, console.log()));
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
  const AblatedRuns runs(options, path, selection, input.tasks, time_in_names(invocation.started));
  if (options.log_samples && ranks.is_first()) {
    watcher.answers = [&](const std::string& name, const MaskSpec* mask,
                          const std::vector<std::vector<ItemAnswer>>& answers) {
      runs.write(folder / "runs", name, mask, answers);
    };
  }
  if (!options.output.empty() && ranks.is_first()) {
    watcher.mask = [&](const std::string& name, const MaskSpec& mask) {
      write_file_atomically(folder / "masks" / (file_name(name) + ".json"),
                            json_document(mask_json(mask)));
    };
  }
  AblateReport report{
      .path = path, .model = model_json(model), .result = {}, .budget = options.budget};
  report.result = run_ablation(model, tokenizer, options.grid, input, watcher, log);
  console.erase();
  if (!ranks.is_first()) return 0;

  auto run = run_json(invocation);
  add_compute(run, options.compute);
  run["ranks"] = ranks.count();
  run["paths"] = {{"model", valid_utf8(path)}, {"data", valid_utf8(options.data)}};
  add_adapter_path(run, options.compute);
  OrderedJson document{{"run", run}};
  document.update(ablate_json(report));
  if (!options.output.empty()) {
    write_file_atomically(folder / "ablation.json", json_document(document));
    write_file_atomically(folder / "ablation.html", render_page(ablate_page(report, run)));
    console.note(str_cat("wrote ablation.json, ablation.html", options.log_samples ? ", runs" : "",
                         " and the masks into ", folder.string()));
  }
  writer.write(options.json ? json_document(document)
                            : ablate_text(report, {.utf8 = utf8_locale(), .colour = false}));
  writer.finish();
  return 0;
}

}  // namespace onset::app
