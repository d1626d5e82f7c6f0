#include "ablate_options.h"

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "text.h"

namespace onset::app {
namespace {

template <typename Enum>
Enum named(const std::string& option, const std::string& name, std::initializer_list<Enum> values) {
  std::vector<std::string> names;
  for (const Enum value : values) {
    if (name == name_of(value)) return value;
    names.emplace_back(name_of(value));
  }
  throw usage_error(str_cat(option, ": ", quote(name), " is not one of ", join(names, ", ")));
}

}  // namespace

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
  line.toggle(log_samples, "--log-samples",
              "write the answers of every run too, runs/NAME/, as onset eval writes them; onset "
              "compare reads any two of them");
  line.toggle(json, "--json", "JSON in place of the table (fields: docs/ablate.md)");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
  line.other_name("--num_fewshot", "--num-fewshot");
  line.other_name("--log_samples", "--log-samples");
  line.example("mpirun -n 4 onset ablate MODEL --tasks mmlu --data DIR -o ablation",
               "four processes share the items");
  line.example("onset ablate MODEL --tasks piqa,wikitext2 --data DIR -o ablation",
               "four criteria at four rates, with pictures");
  line.example(
      "onset ablate MODEL --tasks arc_challenge --data DIR --criterion weight,random "
      "--rate 0.1,0.25 --seeds 10 --budget 200",
      "ten random masks of each size; what is clearly worse is given up after 200 items");
  line.note("What is compared, and what it cannot say: docs/ablate.md.");
}

void AblateOptions::resolve() {
  if (limit > 0 && sample > 0) {
    throw usage_error("--limit and --sample both choose documents", "give one of them");
  }
  if (log_samples && output.empty()) {
    throw usage_error("--log-samples writes files, and no folder is named", "add -o DIR");
  }
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

}  // namespace onset::app
