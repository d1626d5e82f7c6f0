// onset compare: two runs of an evaluation, item by item: did anything change, by how much, and is
// it more than chance does?

#include <algorithm>
#include <cmath>
#include <utility>

#include "compare_report.h"
#include "inputs.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/comparison_json.h"
#include "options.h"
#include "output.h"
#include "verbs.h"

namespace onset::app {
namespace {

constexpr std::int64_t shown_in_all = 40;

struct CompareOptions {
  std::vector<std::string> tasks;
  std::vector<std::string> metrics;
  bool members = false;
  bool by_number = false;
  std::int64_t show = 2;
  ComparisonOptions comparison;
  std::int64_t seed = 0;
  OutputOptions output;

  void declare(CommandLine& line);
  void resolve();
};

void CompareOptions::declare(CommandLine& line) {
  line.group("What is compared");
  line.texts(tasks, "--tasks", "A,B", "tasks and groups by name; without it all that both have");
  line.texts(metrics, "--metric", "A,B", "metrics by name; without it all that both have");
  line.toggle(by_number, "--by-number",
              "pair documents by their number alone, though their hashes differ");
  line.group("Statistics");
  line.number(comparison.paired.alpha, "--alpha", "X",
              "intervals at confidence 1 - X, and a difference is said where p is at most X");
  line.number(comparison.paired.power, "--power", "X",
              "the probability at which the smallest detectable difference is told");
  line.integer(comparison.paired.resamples, "--resamples", "N",
               "resamples of the bootstrap, and flips of the sign-flip test", 100, 10'000'000);
  line.integer(seed, "--seed", "N", "of both; every row begins with it anew", 0, INT64_MAX);
  output.declare(line);
  line.integer(show, "--show", "N", "changed items that are shown of each task with both answers",
               0, INT64_MAX);
  line.toggle(members, "--members", "a row for each task of a group, however many");
  line.other_name("--task", "--tasks");
  line.other_name("--metrics", "--metric");
  line.example("onset compare runs/base runs/masked", "did the mask change anything?");
  line.example("onset compare runs/base runs/masked --tasks piqa --metric acc --show 20",
               "one test, and twenty items that changed");
  line.note(
      "A and B are folders as onset eval or lm-evaluation-harness (0.4, with --log_samples) write "
      "them, or one results_*.json or samples_*.jsonl of such a folder. No model is needed. "
      "Formulas, and what they cannot say: docs/compare.md.");
}

void CompareOptions::resolve() {
  comparison.tasks = parts_of_lists("--tasks", tasks);
  comparison.metrics = parts_of_lists("--metric", metrics);
  comparison.by_number = by_number;
  comparison.paired.seed = static_cast<std::uint64_t>(seed);
  const auto share = [](const char* option, double value) {
    if (!(value > 0 && value < 1)) {
      throw usage_error(str_cat(option, " ", shortest(value), " is not between 0 and 1"));
    }
  };
  share("--alpha", comparison.paired.alpha);
  share("--power", comparison.paired.power);
}

OrderedJson item_json(const ShownItem& item) {
  return {{"doc", item.doc},
          {"a", finite_or_null(item.a)},
          {"b", finite_or_null(item.b)},
          {"question", item.answer_a.question},
          {"target", item.answer_a.target},
          {"answer_a", item.answer_a.answer},
          {"answer_b", item.answer_b.answer}};
}

OrderedJson run_files_json(const EvaluationRun& run) {
  OrderedJson samples = OrderedJson::array();
  for (const auto& task : run.tasks) samples.push_back(valid_utf8(task.path.string()));
  return {
      {"given", valid_utf8(run.files.given)},
      {"results", run.files.results.empty() ? OrderedJson(nullptr)
                                            : OrderedJson(valid_utf8(run.files.results.string()))},
      {"samples", samples}};
}

}  // namespace

std::vector<ShownItems> shown_items(const Comparison& comparison, const EvaluationRun& a,
                                    const EvaluationRun& b, std::int64_t count, std::int64_t most) {
  std::vector<ShownItems> shown;
  std::string last;
  for (std::size_t r = 0; r < comparison.rows.size() && most > 0; ++r) {
    const auto& row = comparison.rows[r];
    if (!row.group_tasks.empty() || row.task == last) continue;
    last = row.task;
    std::vector<ChangedItem> fell;
    std::vector<ChangedItem> rose;
    for (const auto& item : row.changed) (item.b > item.a ? rose : fell).push_back(item);
    for (auto* list : {&fell, &rose}) {
      std::stable_sort(list->begin(), list->end(), [](const auto& one, const auto& two) {
        return std::abs(one.b - one.a) > std::abs(two.b - two.a);
      });
    }
    const auto wanted = static_cast<std::size_t>(std::min(count, most));
    const std::size_t of_fallen =
        std::min(fell.size(), std::max((wanted + 1) / 2, wanted - std::min(wanted, rose.size())));
    fell.resize(of_fallen);
    rose.resize(std::min(rose.size(), wanted - of_fallen));
    ShownItems items{.row = r, .items = {}};
    for (const auto* list : {&fell, &rose}) {
      for (const auto& item : *list) {
        const auto line_a = sample_line(*a.find_task(row.task), *item.in_a);
        const auto line_b = sample_line(*b.find_task(row.task), *item.in_b);
        items.items.push_back({.doc = item.doc,
                               .a = item.a,
                               .b = item.b,
                               .higher = item.b > item.a,
                               .binary = row.result.binary,
                               .answer_a = sample_answer(line_a, row.metric),
                               .answer_b = sample_answer(line_b, row.metric)});
      }
    }
    if (items.items.empty()) continue;
    most -= static_cast<std::int64_t>(items.items.size());
    shown.push_back(std::move(items));
  }
  return shown;
}

OrderedJson compare_json(const CompareReport& report) {
  OrderedJson json = comparison_json(report.comparison, report.options);
  for (const auto& shown : report.shown) {
    OrderedJson items = OrderedJson::array();
    for (const auto& item : shown.items) items.push_back(item_json(item));
    json["comparisons"][shown.row]["shown"] = items;
  }
  return json;
}

int run_compare(const Invocation& invocation) {
  CompareOptions options;
  CommandLine line("compare", "A B [options]",
                   "Compares two runs of an evaluation item by item: the difference with its "
                   "interval, an exact test, what so many items could have shown, and the items "
                   "that changed.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto& given = line.positionals();
  if (given.size() != 2) {
    throw usage_error(str_cat("onset compare takes two runs, and ", given.size(),
                              given.size() == 1 ? " was given" : " were given"),
                      "onset compare A B, where each is a folder of results");
  }
  for (const auto& path : given) refuse_empty_path(path);
  options.resolve();
  CompareReport report{.a = open_run(given[0]),
                       .b = open_run(given[1]),
                       .options = options.comparison,
                       .comparison = {},
                       .shown = {},
                       .members = options.members};
  for (const auto* run : {&report.a, &report.b}) {
    std::vector<std::string> files;
    for (const auto& samples : run->files.samples) files.push_back(samples.path.string());
    if (!run->files.results.empty()) files.push_back(run->files.results.string());
    refuse_overwriting("-o", options.output.output, {.models = {}, .files = files});
  }
  Console console(options.output.quiet);
  report.comparison = compare_runs(report.a, report.b, options.comparison);
  report.shown = shown_items(report.comparison, report.a, report.b, options.show, shown_in_all);
  ResultWriter writer(options.output.output);
  if (options.output.json) {
    OrderedJson run = run_json(invocation);
    run["paths"] = {{"a", run_files_json(report.a)}, {"b", run_files_json(report.b)}};
    OrderedJson document{{"run", run}};
    document.update(compare_json(report));
    writer.write(json_document(document));
  } else {
    const bool utf8 = utf8_locale();
    writer.write(compare_text(report, {.utf8 = utf8, .colour = false}));
  }
  writer.finish();
  return 0;
}

}  // namespace onset::app
