// onset report: scan, explain, rigidity and sinks of one model or several, on one page.

#include <optional>
#include <utility>

#include "inputs.h"
#include "masked.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/report/markdown.h"
#include "options.h"
#include "output.h"
#include "report_page.h"
#include "report_words.h"
#include "text.h"
#include "text_file.h"
#include "verbs.h"

namespace onset::app {
namespace {

constexpr std::size_t most_bytes = 7'900'000;
constexpr const char* default_page = "onset-report.html";

enum class ReportFormat { html, markdown };

struct ReportVerbOptions {
  ReportOptions report;
  ReportFormat format = ReportFormat::html;
  std::string only;
  std::string skip;
  std::string output;
  std::string data;
  bool quiet = false;

  void declare(CommandLine& line);
};

void ReportVerbOptions::declare(CommandLine& line) {
  line.group("What is in it");
  const std::string parts = join(report_part_names(), ", ");
  line.filled_text(only, "--only", "PARTS",
                   "beside the scan these parts only, separated by commas: " + parts,
                   "parts: " + parts);
  line.filled_text(skip, "--skip", "PARTS", "all but these parts", "parts: " + parts);
  line.group("Detection");
  line.number(report.scan.min_abs, "--min-abs", "X", "a massive entry is above this");
  line.number(report.scan.min_ratio, "--min-ratio", "X",
              "and above this many times the median of its layer");
  line.choice(report.scan.rule, "--rule",
              {{"absolute", ScanRule::absolute}, {"relative", ScanRule::relative}},
              "relative leaves out the absolute threshold and asks that the entry last for a "
              "quarter of the layers");
  report.prompts.declare(line);
  report.text.declare(line);
  report.mask.declare(line);
  report.compute.residency = Residency::resident;
  report.compute.declare(line);
  line.group("Output");
  line.choice(format, "--format", {{"html", ReportFormat::html}, {"md", ReportFormat::markdown}},
              "a page with pictures, or the words and tables alone in Markdown");
  line.path(output, "-o,--output", "FILE",
            str_cat("where to write it; without it, a page goes to ", default_page,
                    " here and its summary to standard output, and Markdown to standard output; - "
                    "is standard output"));
  line.path(data, "--data", "FILE.json",
            "write every number too: the JSON of scan, explain, rigidity and sinks");
  line.toggle(quiet, "--quiet", "no progress and no notes on standard error");
  line.other_name("--json", "--data");
  line.other_name("--report", "--output");
  line.example("onset report MODEL", str_cat("everything, into ", default_page));
  line.example("onset report MODEL --skip vocabulary,factorial,dose -o quick.html",
               "without the experiments: seconds");
  line.example("onset report A B C.gguf -o families.html", "a comparison, then each model");
  line.example("onset report MODEL --wemask wemask.json", "masked beside unmasked, twice the time");
  line.example("onset report MODEL --format md", "the words and tables, to read in a terminal");
  line.note(
      "The page is one file that needs no network (docs/report.md). Sinks, perplexity and doses "
      "are "
      "measured on --text or a built-in sample.");
}

OrderedJson run_object(const Invocation& invocation, const ReportVerbOptions& options,
                       const std::vector<ModelReport>& reports) {
  OrderedJson run = run_json(invocation);
  add_compute(run, options.report.compute);
  OrderedJson models = OrderedJson::array();
  for (const auto& report : reports) models.push_back(valid_utf8(report.scan.path));
  OrderedJson jsonl = OrderedJson::array();
  for (const auto& path : options.report.prompts.jsonl) jsonl.push_back(valid_utf8(path));
  const auto& text = options.report.text.file;
  run["paths"] = {{"models", models},
                  {"jsonl", jsonl},
                  {"text", text.empty() ? OrderedJson(nullptr) : OrderedJson(valid_utf8(text))}};
  add_mask_path(run, options.report.mask.path);
  add_adapter_path(run, options.report.compute);
  return run;
}

std::string data_text(const OrderedJson& run, const std::vector<ModelReport>& reports) {
  OrderedJson document{{"run", run}, {"models", OrderedJson::array()}};
  for (const auto& report : reports) document["models"].push_back(report_json(report));
  return json_document(document);
}

// The summary, for those who have not opened the page yet.
std::string summary_text(const Page& page) {
  std::string text;
  for (const auto& paragraph : page.lead) text += wrap(paragraph, 80, 0) + "\n";
  for (const auto& answer : page.answers) {
    text += "\n" + answer.name + "\n  " + wrap(answer.value, 80, 2) + "\n";
  }
  return text;
}

// Refuses what cannot work before anything is read.
void check(const ReportVerbOptions& options, const std::vector<std::string>& models) {
  if (models.empty()) {
    throw usage_error("onset report needs a model: a folder or a .gguf file",
                      "see: onset report --help");
  }
  for (const auto& path : models) refuse_empty_path(path);
  refuse_shared_adapter(options.report.compute, models.size());
  options.report.text.check();
  options.report.mask.check();
  InputPaths inputs{.models = models, .files = options.report.prompts.jsonl};
  options.report.compute.add_to(inputs);
  if (options.report.mask.given()) inputs.files.push_back(options.report.mask.path);
  if (!options.report.text.file.empty()) {
    inputs.files.push_back(options.report.text.file);
    static_cast<void>(read_text(options.report.text.file, "--text"));
  }
  if (!options.report.text.ids.empty()) {
    static_cast<void>(parse_ids("--text-ids", options.report.text.ids));
  }
  refuse_overwriting("-o", options.output, inputs);
  refuse_overwriting("--data", options.data, inputs);
  const bool to_output =
      options.output == "-" || (options.output.empty() && options.format == ReportFormat::markdown);
  if (options.data == "-") {
    throw usage_error("--data needs a file: standard output is for the report",
                      "for example --data report.json");
  }
  if (!options.data.empty() && !to_output && same_output(options.data, options.output)) {
    throw usage_error("--data and --output name the same file", "give them different names");
  }
}

// Each model in turn; the exit code.
int measure_all(const std::vector<std::string>& models, const ReportVerbOptions& options,
                const std::vector<PromptSource>& sources, std::vector<ModelReport>& reports) {
  int exit_code = 0;
  for (const auto& path : models) {
    Console console(options.quiet);
    auto& report = reports.emplace_back();
    report.scan.path = path;
    try {
      measure_report(sources, options.report, console.log(), report);
    } catch (...) {
      // Among several models one that fails does not hide the others.
      if (models.size() == 1) throw;
      console.erase();
      report = {};
      report.scan.path = path;
      report.scan.failure = current_failure();
      onset::app::report(report.scan.failure);
      exit_code = 1;
    }
  }
  return exit_code;
}

}  // namespace

int run_report(const Invocation& invocation) {
  ReportVerbOptions options;
  CommandLine line("report", "MODEL... [options]",
                   "Runs scan, explain, rigidity and sinks and writes what they find on one page: "
                   "the answers in words first, then the pictures. Of several models it compares "
                   "where massive activations are born.",
                   invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto& models = line.positionals();
  options.report.parts = parse_report_parts(options.only, options.skip);
  if (options.output.empty() && options.format == ReportFormat::html) {
    options.output = default_page;
  }
  check(options, models);
  const auto sources = prompts_or_built_in(options.report.prompts);

  const bool to_output = options.output.empty() || options.output == "-";
  ResultWriter writer(options.output);
  std::optional<ResultWriter> data;
  if (!options.data.empty()) data.emplace(options.data);
  spin_briefly();
  keep_freed_memory();
  set_threads(options.report.compute.thread_count());
  std::vector<ModelReport> reports;
  const int exit_code = measure_all(models, options, sources, reports);

  const auto run = run_object(invocation, options, reports);
  Page page = report_page(reports, run);
  std::string text;
  if (options.format == ReportFormat::html) {
    fit_page(page, most_bytes);
    text = render_page(page);
  } else {
    text = render_markdown(page);
  }
  if (data) {
    data->write(data_text(run, reports));
    data->finish();
  }
  writer.write(text);
  writer.finish();
  if (to_output) return exit_code;
  ResultWriter summary("");
  summary.write(summary_text(page));
  summary.finish();
  Console(options.quiet)
      .note(str_cat("report written to ", options.output, " (",
                    human_bytes(static_cast<double>(text.size())), ")"));
  return exit_code;
}

}  // namespace onset::app
